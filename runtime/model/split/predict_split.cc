#include "runtime/model/split/predict_split.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "runtime/model/arch/graph_taps.h"

namespace trine {
namespace {

// Returns the part of an op that each of its owners computes.
std::vector<std::pair<size_t, double>> PartsOf(const OpGraph& graph, size_t op,
                                               const OpOwners& owners) {
  if (owners.empty()) return {{0, 1}};
  if (owners.size() == 1) return {{owners[0].device, 1}};
  const auto rows = static_cast<double>(graph.tensor(graph.op(op).in[0]).dims[1]);
  std::vector<std::pair<size_t, double>> parts;
  for (const RowShare& share : owners) {
    parts.emplace_back(share.device, static_cast<double>(share.end - share.begin) / rows);
  }
  return parts;
}

class Predictor {
 public:
  Predictor(const SegmentGraph& segment, const SegmentOwners& owners,
            const std::vector<const DeviceCosts*>& costs, const PassShape& pass,
            const std::map<int64_t, double>& in_slots)
      : segment_(segment),
        graph_(segment.graph),
        owners_(owners),
        costs_(costs),
        pass_(pass),
        in_slots_(in_slots),
        schedule_(ScheduleOps(segment.graph, owners.ops)),
        steps_(schedule_.n_steps, std::vector<double>(costs.size(), -1)) {
    time_.busy_ns.resize(costs.size());
  }

  SplitTime Predict() {
    for (size_t op = 0; op < graph_.n_ops(); ++op) AddOp(op);
    const auto tokens = static_cast<double>(pass_.params[kParamTokens]);
    for (const std::vector<double>& step : steps_) {
      double longest = 0;
      for (size_t d = 0; d < step.size(); ++d) {
        if (step[d] < 0) continue;  // the device has nothing to do in this step
        const double ns = costs_[d]->run_ns + step[d] * costs_[d]->correction.Within(tokens);
        time_.busy_ns[d] += ns;
        longest = std::max(longest, ns);
      }
      time_.ns += longest;
    }
    for (const SlotVersion& version : schedule_.versions) AddMoves(version);
    return time_;
  }

 private:
  void AddOp(size_t op) {
    if (graph_.op(op).kind == kDivideIds) return;  // the host does it, in next to no time
    for (const auto& [device, part] : PartsOf(graph_, op, owners_.ops[op])) {
      const PredictedTime one = PredictOp(*costs_[device], graph_, op, pass_, ExpertsOf(op));
      double& ns = steps_[schedule_.steps[op]][device];
      ns = std::max(ns, 0.0) + one.ns * part;
      if (device == 0) time_.weight_bytes += one.weight_bytes * part;
      time_.unknown = time_.unknown || one.unknown;
    }
  }

  // Returns the part of the chosen experts that a product of a divided layer computes.
  ExpertPart ExpertsOf(size_t op) const {
    const trine_op& o = graph_.op(op);
    if (o.kind != TRINE_OP_MOE_MATMUL) return {};
    for (const DividedLayer& layer : segment_.divided) {
      if (o.in[2] != layer.home_ids && o.in[2] != layer.rest_ids) continue;
      const auto slots = static_cast<double>(layer.slots);
      const auto all = static_cast<double>(layer.experts);
      const auto known = in_slots_.find(layer.layer);
      const double home = known != in_slots_.end() ? known->second : slots / all;
      return o.in[2] == layer.home_ids ? ExpertPart{home, slots}
                                       : ExpertPart{1 - home, all - slots};
    }
    return {};
  }

  // Adds the moves of a value from the devices that compute it to the others that read it.
  void AddMoves(const SlotVersion& version) {
    if (version.writer == SlotVersion::kHost ||
        graph_.slots()[version.slot].role == TRINE_ROLE_STATE) {
      return;
    }
    const auto writers = PartsOf(graph_, version.writer, owners_.ops[version.writer]);
    const trine_op& op = graph_.op(version.writer);
    double bytes = 0;
    for (uint32_t i = 0; i < op.n_out; ++i) {
      if (graph_.SlotOf(op.out[i]) != version.slot) continue;
      bytes = static_cast<double>(BytesAt(graph_.tensor(op.out[i]), pass_.params));
    }
    // The host writes divided ids, also for the device that the ids come from.
    const bool hosts = op.kind == kDivideIds;
    std::map<size_t, bool> readers;
    for (const size_t reader : version.readers) {
      for (const auto& [device, part] : PartsOf(graph_, reader, owners_.ops[reader])) {
        if (hosts || writers.size() > 1 || device != writers[0].first) readers[device] = true;
      }
    }
    if (readers.empty()) return;
    for (const auto& [device, part] : writers) {
      // With several writers, the main device's own part may stay where it is.
      if (writers.size() > 1 && device == 0) continue;
      time_.ns += costs_[device]->out.Of(bytes * part);
    }
    for (const auto& [device, reads] : readers) time_.ns += costs_[device]->in.Of(bytes);
  }

  const SegmentGraph& segment_;
  const OpGraph& graph_;
  const SegmentOwners& owners_;
  const std::vector<const DeviceCosts*>& costs_;
  const PassShape& pass_;
  const std::map<int64_t, double>& in_slots_;
  const OpSchedule schedule_;
  std::vector<std::vector<double>> steps_;  // [step][device]: ns of its ops; -1: it has none
  SplitTime time_;
};

}  // namespace

SplitTime PredictSplit(const SegmentGraph& segment, const SegmentOwners& owners,
                       const std::vector<const DeviceCosts*>& costs, const PassShape& pass,
                       const std::map<int64_t, double>& in_slots) {
  return Predictor(segment, owners, costs, pass, in_slots).Predict();
}

}  // namespace trine
