#include "runtime/model/op_schedule.h"

#include <algorithm>
#include <map>
#include <set>

namespace trine {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

bool IsProduct(const trine_op& op) {
  return op.kind == TRINE_OP_MATMUL || op.kind == TRINE_OP_MOE_MATMUL;
}

bool IsMainsAlone(const OpOwners& owners) {
  return owners.empty() || (owners.size() == 1 && owners[0].device == 0);
}

// Whether what one leaves has to be moved before the other can have it.
bool Crosses(const OpOwners& a, const OpOwners& b) {
  if (a.size() > 1 || b.size() > 1) return true;
  return (a.empty() ? 0 : a[0].device) != (b.empty() ? 0 : b[0].device);
}

class Scheduler {
 public:
  Scheduler(const OpGraph& graph, const std::vector<OpOwners>& owners)
      : graph_(graph), owners_(owners), links_(graph.n_ops()) {}

  OpSchedule Make() {
    for (size_t op = 0; op < graph_.n_ops(); ++op) FindVersions(op);
    std::set<size_t> read_elsewhere;  // by products
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      if (!IsMainsAlone(owners_[op])) read_elsewhere.insert(links_[op].multiplied);
    }
    read_elsewhere.erase(kNone);
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      schedule_.steps.push_back(StepOf(op, read_elsewhere));
      schedule_.n_steps = std::max(schedule_.n_steps, schedule_.steps.back() + 1);
    }
    return std::move(schedule_);
  }

 private:
  struct Links {
    std::vector<size_t> reads, replaces;  // versions
    size_t multiplied = kNone;            // the version a product reads its activations from
  };

  size_t Current(SlotId slot) {
    const auto [found, is_new] = current_.try_emplace(slot, schedule_.versions.size());
    if (is_new) schedule_.versions.push_back({slot, SlotVersion::kHost, {}});
    return found->second;
  }

  void Read(size_t op, size_t version) {
    std::vector<size_t>& readers = schedule_.versions[version].readers;
    if (!readers.empty() && readers.back() == op) return;
    readers.push_back(op);
    links_[op].reads.push_back(version);
  }

  void FindVersions(size_t index) {
    const trine_op& op = graph_.op(index);
    for (uint32_t i = 0; i < op.n_in; ++i) {
      if (op.in[i] == TRINE_NONE) continue;
      const SlotId slot = graph_.SlotOf(op.in[i]);
      if (graph_.slots()[slot].role == TRINE_ROLE_CONSTANT) continue;
      Read(index, Current(slot));
      if (i == 1 && IsProduct(op)) links_[index].multiplied = Current(slot);
    }
    for (uint32_t i = 0; i < op.n_out; ++i) {
      const SlotId slot = graph_.SlotOf(op.out[i]);
      if (current_.count(slot) != 0) {  // a view may write no more than a part of it
        Read(index, current_[slot]);
        links_[index].replaces.push_back(current_[slot]);
      }
      current_[slot] = schedule_.versions.size();
      schedule_.versions.push_back({slot, index, {}});
    }
  }

  size_t After(size_t before, size_t op, bool apart) const {
    return schedule_.steps[before] + (apart || Crosses(owners_[before], owners_[op]) ? 1 : 0);
  }

  size_t StepOf(size_t op, const std::set<size_t>& read_elsewhere) const {
    size_t step = 0;
    for (const size_t version : links_[op].reads) {
      const size_t writer = schedule_.versions[version].writer;
      if (writer == SlotVersion::kHost) continue;
      const bool apart = version == links_[op].multiplied && read_elsewhere.count(version) != 0;
      step = std::max(step, After(writer, op, apart));
    }
    for (const size_t version : links_[op].replaces) {
      for (const size_t reader : schedule_.versions[version].readers) {
        if (reader != op) step = std::max(step, After(reader, op, false));
      }
    }
    return step;
  }

  const OpGraph& graph_;
  const std::vector<OpOwners>& owners_;
  std::vector<Links> links_;
  std::map<SlotId, size_t> current_;  // versions
  OpSchedule schedule_;
};

}  // namespace

OpSchedule ScheduleOps(const OpGraph& graph, const std::vector<OpOwners>& owners) {
  return Scheduler(graph, owners).Make();
}

}  // namespace trine
