#include "runtime/model/split/tensor_places.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "dispatch/exec/segment.h"
#include "runtime/model/split/piece_graph.h"

namespace trine {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

bool IsProduct(const trine_op& op) {
  return op.kind == TRINE_OP_MATMUL || op.kind == TRINE_OP_MOE_MATMUL;
}

bool IsMainsAlone(const OpOwners& owners) {
  return owners.empty() || (owners.size() == 1 && owners[0].device == 0);
}

// Returns whether a value of one op has to be moved before the other can read it.
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
    // Versions that a product reads on another device than the main one and their writer's.
    std::set<size_t> read_elsewhere;
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      const size_t version = links_[op].multiplied;
      if (IsMainsAlone(owners_[op]) || version == kNone) continue;
      const size_t writer = schedule_.versions[version].writer;
      if (writer == SlotVersion::kHost || Crosses(owners_[writer], owners_[op])) {
        read_elsewhere.insert(version);
      }
    }
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      schedule_.steps.push_back(StepOf(op, read_elsewhere));
      schedule_.n_steps = std::max(schedule_.n_steps, schedule_.steps.back() + 1);
    }
    return std::move(schedule_);
  }

 private:
  struct Links {
    std::vector<size_t> reads, replaces;  // versions
    size_t multiplied = kNone;            // the version of a product's activations
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

  // Returns whether an op computes a router's logits. Products elsewhere wait for the router, so it
  // need not wait to run beside them.
  bool IsRouter(const trine_op& op) const {
    const std::vector<uint32_t> readers = graph_.Readers(op.out[0]);
    return std::any_of(readers.begin(), readers.end(), [&](uint32_t reader) {
      return graph_.op(reader).kind == TRINE_OP_MOE_ROUTE;
    });
  }

  void FindVersions(size_t index) {
    const trine_op& op = graph_.op(index);
    for (uint32_t i = 0; i < op.n_in; ++i) {
      if (op.in[i] == TRINE_NONE) continue;
      const SlotId slot = graph_.SlotOf(op.in[i]);
      if (graph_.slots()[slot].role == TRINE_ROLE_CONSTANT) continue;
      Read(index, Current(slot));
      if (i == 1 && IsProduct(op) && !IsRouter(op)) links_[index].multiplied = Current(slot);
    }
    for (uint32_t i = 0; i < op.n_out; ++i) {
      const SlotId slot = graph_.SlotOf(op.out[i]);
      if (current_.count(slot) != 0) {  // a view may write only a part of it
        Read(index, current_[slot]);
        links_[index].replaces.push_back(current_[slot]);
      }
      current_[slot] = schedule_.versions.size();
      schedule_.versions.push_back({slot, index, {}});
    }
  }

  bool IsHosts(size_t op) const { return graph_.op(op).kind == kDivideIds; }

  // What the host does comes after the pieces of a step, and before those of the next one.
  size_t After(size_t before, size_t op, bool apart) const {
    if (IsHosts(op)) return schedule_.steps[before];
    if (IsHosts(before)) return schedule_.steps[before] + 1;
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

// Matrices with fewer rows are not worth sharing, such as a router's or a gate's.
constexpr int64_t kLeastRows = 32;

// Returns the weight of an op; null: it has none.
const gguf::TensorInfo* WeightOf(const SegmentGraph& segment, size_t index) {
  const trine_op& op = segment.graph.op(index);
  if (op.kind != TRINE_OP_MATMUL && op.kind != TRINE_OP_MOE_MATMUL &&
      op.kind != TRINE_OP_GATHER_ROWS) {
    return nullptr;
  }
  for (const WeightUse& use : segment.weights) {
    if (use.tensor == op.in[0]) return use.info;
  }
  return nullptr;
}

// Returns whether the op computes a router's logits. The segment's own device needs all of them
// before it can choose the experts, so the rows are not shared.
bool IsRouter(const SegmentGraph& segment, size_t index) {
  const OpGraph& g = segment.graph;
  for (const uint32_t reader : g.Readers(g.op(index).out[0])) {
    if (g.op(reader).kind == TRINE_OP_MOE_ROUTE) return true;
  }
  return false;
}

size_t NumberOf(const NamedDevice& device, std::vector<NamedDevice>* devices) {
  const auto found = std::find_if(devices->begin(), devices->end(),
                                  [&](const NamedDevice& d) { return d.device == device.device; });
  if (found != devices->end()) return static_cast<size_t>(found - devices->begin());
  devices->push_back(device);
  return devices->size() - 1;
}

// Returns whether an op only connects one product to the next.
bool IsBetween(uint32_t kind) {
  return kind == TRINE_OP_GLU || kind == TRINE_OP_ACTIVATION || kind == TRINE_OP_ADD ||
         kind == TRINE_OP_MUL || kind == TRINE_OP_SCALE || kind == TRINE_OP_SOFTCAP;
}

// Finds the ops that JoinOps moves.
class Joiner {
 public:
  Joiner(const OpGraph& graph, const std::function<bool(size_t, size_t)>& runs,
         std::vector<OpOwners>* owners)
      : graph_(graph),
        runs_(runs),
        owners_(*owners),
        schedule_(ScheduleOps(graph, std::vector<OpOwners>(graph.n_ops()))),
        device_(graph.n_ops(), 0),
        joins_(graph.n_ops(), false) {
    for (size_t op = 0; op < graph.n_ops(); ++op) {
      if (!owners_[op].empty())
        device_[op] = owners_[op].size() > 1 ? kNone : owners_[op][0].device;
    }
    reads_.resize(graph.n_ops());
    for (size_t v = 0; v < schedule_.versions.size(); ++v) {
      for (const size_t reader : schedule_.versions[v].readers) reads_[reader].push_back(v);
    }
  }

  void Join() {
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      if (!owners_[op].empty() || !MayJoin(op)) continue;
      const size_t device = DeviceOfInputs(op);
      if (device == 0 || device == kNone || !runs_(device, op)) continue;
      device_[op] = device;
      joins_[op] = true;
    }
    // An op that stays may be what another op was between.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t op = 0; op < graph_.n_ops(); ++op) {
        if (!joins_[op] || (DeviceOfInputs(op) == device_[op] && AllStay(op))) continue;
        device_[op] = 0;
        joins_[op] = false;
        changed = true;
      }
    }
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      if (joins_[op]) owners_[op] = {{device_[op], 0, 0}};
    }
  }

 private:
  bool IsSum(size_t op) const { return graph_.op(op).kind == TRINE_OP_MOE_COMBINE; }
  bool MayJoin(size_t op) const { return IsBetween(graph_.op(op).kind) || IsSum(op); }

  // Returns the device that computes all inputs of an op (of a sum: what is summed); kNone: several
  // devices, or the host.
  size_t DeviceOfInputs(size_t op) const {
    size_t device = kNone;
    bool first = true;
    for (const size_t v : reads_[op]) {
      const SlotVersion& version = schedule_.versions[v];
      if (IsSum(op) && version.slot != graph_.SlotOf(graph_.op(op).in[0])) continue;
      const size_t one = version.writer == SlotVersion::kHost ? kNone : device_[version.writer];
      if (!first && one != device) return kNone;
      device = one;
      first = false;
    }
    return device;
  }

  // Returns whether all results of an op are temporary and read on its device alone. The result of
  // a sum is smaller than what is summed, so it may go elsewhere.
  bool AllStay(size_t op) const {
    if (IsSum(op)) return true;
    for (const SlotVersion& version : schedule_.versions) {
      if (version.writer != op) continue;
      if (version.readers.empty() || graph_.slots()[version.slot].role != TRINE_ROLE_TEMP) {
        return false;
      }
      for (const size_t reader : version.readers) {
        if (device_[reader] != device_[op]) return false;
      }
    }
    return true;
  }

  const OpGraph& graph_;
  const std::function<bool(size_t, size_t)>& runs_;
  std::vector<OpOwners>& owners_;
  const OpSchedule schedule_;
  std::vector<size_t> device_;              // by op
  std::vector<bool> joins_;                 // by op
  std::vector<std::vector<size_t>> reads_;  // by op: versions
};

}  // namespace

void JoinOps(const OpGraph& graph, const std::function<bool(size_t device, size_t op)>& runs,
             std::vector<OpOwners>* owners) {
  Joiner(graph, runs, owners).Join();
}

OpSchedule ScheduleOps(const OpGraph& graph, const std::vector<OpOwners>& owners) {
  return Scheduler(graph, owners).Make();
}

std::vector<RowShare> CutRows(int64_t n, const std::vector<double>& shares) {
  constexpr int64_t kManyRows = 1024;
  const int64_t unit = n >= kManyRows ? 32 : 8;
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<RowShare> cut;
  double sum = 0;
  int64_t begin = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i];
    const double at = sum / total * static_cast<double>(n) / static_cast<double>(unit);
    int64_t end = std::min(static_cast<int64_t>(at + 0.5) * unit, n);
    if (i + 1 == shares.size()) end = n;
    if (end > begin) cut.push_back({i, begin, end});
    begin = std::max(begin, end);
  }
  return cut;
}

SegmentOwners FindOwners(const SegmentPlace& place, const SegmentGraph& segment,
                         const TensorPlaces& places) {
  SegmentOwners owners;
  owners.devices.push_back({place.device, place.device_name});
  owners.ops.resize(segment.graph.n_ops());
  if (places.empty()) return owners;
  std::vector<double> shares;
  for (const DeviceRows& rows : places.rows) shares.push_back(rows.share);
  for (size_t op = 0; op < owners.ops.size(); ++op) {
    const gguf::TensorInfo* weight = WeightOf(segment, op);
    if (weight == nullptr) continue;
    const auto named = places.tensors.find(std::string(weight->name));
    if (named != places.tensors.end()) {
      owners.ops[op] = {{NumberOf(named->second, &owners.devices), 0, 0}};
      continue;
    }
    if (shares.empty() || !HasRows(segment, op) || IsRouter(segment, op)) continue;
    const int64_t n = segment.graph.tensor(segment.graph.op(op).in[0]).dims[1];
    if (n < kLeastRows) continue;
    for (RowShare share : CutRows(n, shares)) {
      share.device = NumberOf(places.rows[share.device].device, &owners.devices);
      owners.ops[op].push_back(share);
    }
  }
  JoinOps(
      segment.graph,
      [&](size_t device, size_t op) {
        return RunsOp(*owners.devices[device].device, segment.graph, op);
      },
      &owners.ops);
  return owners;
}

}  // namespace trine
