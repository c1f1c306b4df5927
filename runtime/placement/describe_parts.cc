#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "dispatch/cost/cost_model.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/experts/slot_tensors.h"
#include "runtime/model/run/route_plan.h"
#include "runtime/model/split/graph_split.h"
#include "runtime/model/split/predict_split.h"
#include "runtime/model/weights/packed_weights.h"
#include "runtime/placement/describe_units.h"

namespace trine {
namespace {

// Describes a device with some weights of its layers on other devices.
class PartsDescriber {
 public:
  PartsDescriber(const DescribeInputs& inputs, const TensorPlaces& places,
                 const std::map<int64_t, double>& in_slots,
                 const std::map<std::string, KnownCosts>& costs)
      : file_(*inputs.file),
        config_(inputs.config),
        limits_(inputs.limits),
        options_(inputs.options),
        passes_(inputs.passes),
        places_(places),
        in_slots_(in_slots),
        costs_(costs) {}

  // Replaces bytes and times of the units whose weights are elsewhere. Adds to `shares`, by the
  // name of a device, what that device has and does.
  absl::Status Describe(const NamedDevice& home, const std::atomic<bool>& wanted, PlanDevice* out,
                        std::map<std::string, PlanShare>* shares, PartsNeeds* needs) const {
    const int layers = static_cast<int>(config_.n_layers);
    for (int unit = 0; unit < layers + 2; ++unit) {
      if (!wanted) return Abandoned();
      const LayerSpan span = UnitSpan(unit, layers);
      auto graph = Build(span, /*finish=*/false);
      if (!graph.ok()) return graph.status();
      const SegmentOwners owners = FindOwners({home.device, home.name, span}, *graph, places_);
      if (!owners.elsewhere()) continue;
      const auto u = static_cast<size_t>(unit);
      if (needs->bytes == 0 && span.layers() > 0) {
        auto moved = MovedBytes(home, span);
        if (!moved.ok()) return moved.status();
        needs->bytes = *moved;
      }
      if (absl::Status s = CountBytes(span, *graph, owners, u, out, shares); !s.ok()) return s;
      const bool can_run = CanRunAll(*graph, owners);
      CountTimes(*graph, owners, can_run, passes_.decode, &PlanShare::decode_ns, u, &out->decode,
                 shares);
      double fetched_ns = kNever;
      if (can_run && MayFetch(owners)) {
        const auto fetched = TimeFetched(home, span);
        if (!fetched.ok()) return fetched.status();
        fetched_ns = *fetched;
      }
      needs->fetches |= CountTimes(*graph, owners, can_run, passes_.prefill, &PlanShare::prefill_ns,
                                   u, &out->prefill, shares, fetched_ns);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Builds the graph of a span, with layers that places_ divides.
  absl::StatusOr<SegmentGraph> Build(const LayerSpan& span, bool finish) const {
    const ExpertDivision division = {
        places_.slots, /*in_place=*/false,
        [&](const gguf::TensorInfo& all, int64_t n) { return slot_tensors_.First(all, n); }};
    return BuildSegmentGraph(file_, config_, limits_, span,
                             {.finish = finish, .division = &division});
  }

  // Predicts how long a pass that reads a prompt takes if home fetches what is elsewhere. Returns
  // kNever if that is not known.
  absl::StatusOr<double> TimeFetched(const NamedDevice& home, const LayerSpan& span) const {
    // Home fetches all experts then, whichever are in slots.
    const auto whole = BuildSegmentGraph(file_, config_, limits_, span, {.finish = false});
    if (!whole.ok()) return whole.status();
    const SegmentOwners owners = FindOwners({home.device, home.name, span}, *whole, places_);
    double flops = 0;
    bool known = true;
    const double ns = PredictFetched(costs_.at(home.name).costs, whole->graph, owners,
                                     passes_.prefill, &flops, &known);
    return known ? ns : kNever;
  }

  PlanShare& ShareOf(const std::string& device, std::map<std::string, PlanShare>* shares) const {
    const auto units = static_cast<size_t>(config_.n_layers) + 2;
    const auto [found, is_new] = shares->try_emplace(device);
    if (is_new) {
      found->second.bytes.resize(units);
      found->second.decode_ns.resize(units);
      found->second.prefill_ns.resize(units);
    }
    return found->second;
  }

  bool MayFetch(const SegmentOwners& owners) const {
    const bool rows = std::any_of(owners.ops.begin(), owners.ops.end(),
                                  [](const OpOwners& o) { return o.size() > 1; });
    return options_.dispatch && options_.file_mapped && !rows &&
           CanFetch(owners.devices[0].device->info());
  }

  // Returns the bytes on home of the values that move between devices in two layers, and of what
  // comes in and goes out. Layers share this memory. A device with its own memory has these values
  // twice: where the host writes them, and where its kernels read them.
  absl::StatusOr<uint64_t> MovedBytes(const NamedDevice& home, const LayerSpan& layer) const {
    const int64_t end = std::min<int64_t>(layer.begin + 2, config_.n_layers);
    const LayerSpan span = {end - std::min<int64_t>(end, 2), end, false, false};
    auto graph = Build(span, /*finish=*/false);
    if (!graph.ok()) return graph.status();
    const SegmentOwners owners = FindOwners({home.device, home.name, span}, *graph, places_);
    std::vector<bool> sees_rows;
    for (const NamedDevice& d : owners.devices) {
      sees_rows.push_back((d.device->info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0);
    }
    const GraphSplit split = SplitGraph(*graph, owners.ops, sees_rows);
    const uint64_t bytes =
        std::accumulate(split.buffers[0].begin(), split.buffers[0].end(), uint64_t{0});
    return sees_rows[0] ? bytes : 2 * bytes;
  }

  static bool CanRunAll(const SegmentGraph& graph, const SegmentOwners& owners) {
    for (size_t op = 0; op < owners.ops.size(); ++op) {
      if (graph.graph.op(op).kind == kDivideIds) continue;  // the host's
      if (owners.ops[op].empty()) {
        if (!RunsOp(*owners.devices[0].device, graph.graph, op)) return false;
        continue;
      }
      for (const RowShare& share : owners.ops[op]) {
        if (!RunsOp(*owners.devices[share.device].device, graph.graph, op)) return false;
      }
    }
    return true;
  }

  // Returns the bytes of each weight of the span in the layout that a device wants.
  absl::StatusOr<std::map<const gguf::TensorInfo*, uint64_t>> BytesOn(const Device& device,
                                                                      const LayerSpan& span) const {
    auto graph = Build(span, /*finish=*/true);
    if (!graph.ok()) return graph.status();
    if (options_.pack) ChooseLayouts(device, &*graph, [](const std::string&) {});
    std::map<const gguf::TensorInfo*, uint64_t> bytes;
    for (const WeightUse& use : graph->weights) bytes[use.info] = WeightBytes(use);
    return bytes;
  }

  absl::Status CountBytes(const LayerSpan& span, const SegmentGraph& graph,
                          const SegmentOwners& owners, size_t unit, PlanDevice* out,
                          std::map<std::string, PlanShare>* shares) const {
    std::vector<std::map<const gguf::TensorInfo*, uint64_t>> bytes;
    for (const NamedDevice& device : owners.devices) {
      auto known = BytesOn(*device.device, span);
      if (!known.ok()) return known.status();
      bytes.push_back(*std::move(known));
    }
    std::set<std::pair<const gguf::TensorInfo*, size_t>> seen;  // a weight and its device
    out->weight_bytes[unit] = 0;
    for (const WeightUse& use : graph.weights) {
      for (const uint32_t op : graph.graph.Readers(use.tensor)) {
        const OpOwners whole = {RowShare{}};
        const bool vector = use.info->rank < 2;
        const OpOwners& all = owners.ops[op].empty() ? whole : owners.ops[op];
        const auto rows = static_cast<double>(graph.graph.tensor(use.tensor).dims[1]);
        for (const RowShare& share : all) {
          if (!seen.emplace(use.info, share.device).second) continue;
          const auto n = static_cast<double>(bytes[share.device].at(use.info));
          const double part =
              all.size() == 1 || vector ? 1 : static_cast<double>(share.end - share.begin) / rows;
          const auto taken = static_cast<uint64_t>(n * part);
          const bool free = options_.cpu_from_file &&
                            owners.devices[share.device].device->info().tier == TRINE_TIER_CPU;
          if (free) continue;
          if (share.device == 0) {
            out->weight_bytes[unit] += taken;
          } else {
            ShareOf(owners.devices[share.device].name, shares).bytes[unit] += taken;
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // Returns whether the time is that of fetched weights, which is `fetched_ns`.
  bool CountTimes(const SegmentGraph& graph, const SegmentOwners& owners, bool can_run,
                  const PassShape& pass, std::vector<int64_t> PlanShare::*busy, size_t unit,
                  PassTimes* times, std::map<std::string, PlanShare>* shares,
                  double fetched_ns = kNever) const {
    std::vector<const DeviceCosts*> costs;
    for (const NamedDevice& device : owners.devices) {
      costs.push_back(&costs_.at(device.name).costs);
    }
    const SplitTime time = PredictSplit(graph, owners, costs, pass, in_slots_);
    const bool known = can_run && !time.unknown;
    // Passes that read prompts may fetch the weights instead.
    const bool fetches = known && fetched_ns < time.ns;
    double ns = fetches ? fetched_ns : time.ns;
    // The main device's last piece of a layer and its first of the next one are one piece.
    ns = std::max(ns - costs[0]->run_ns, 0.0);
    times->unit_ns[unit] = known ? Nanoseconds(ns) : kCannotRun;
    times->domain_ns[unit] = known ? Nanoseconds(time.weight_bytes) : 0;
    for (size_t d = 1; d < owners.devices.size(); ++d) {
      (ShareOf(owners.devices[d].name, shares).*busy)[unit] =
          known && !fetches ? Nanoseconds(time.busy_ns[d]) : 0;
    }
    return fetches;
  }

  const gguf::File& file_;
  const ModelConfig& config_;
  const SegmentLimits& limits_;
  const ProblemOptions& options_;
  const NominalPasses& passes_;
  const TensorPlaces& places_;
  const std::map<int64_t, double>& in_slots_;
  const std::map<std::string, KnownCosts>& costs_;
  mutable SlotTensors slot_tensors_;
};

}  // namespace

absl::Status DescribeParts(const DescribeInputs& inputs, const NamedDevice& home,
                           const TensorPlaces& places, const std::map<int64_t, double>& in_slots,
                           const std::map<std::string, KnownCosts>& costs,
                           const std::atomic<bool>& wanted, PlanDevice* out,
                           std::map<std::string, PlanShare>* shares, PartsNeeds* needs) {
  return PartsDescriber(inputs, places, in_slots, costs).Describe(home, wanted, out, shares, needs);
}

}  // namespace trine
