#include "runtime/placement/describe_units.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "dispatch/cost/cost_model.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/run/route_plan.h"
#include "runtime/model/weights/packed_weights.h"

namespace trine {
namespace {

class DeviceDescriber {
 public:
  explicit DeviceDescriber(const DescribeInputs& inputs)
      : file_(*inputs.file),
        config_(inputs.config),
        limits_(inputs.limits),
        options_(inputs.options),
        passes_(inputs.passes) {}

  // Fills in bytes and times of all units.
  absl::Status Describe(const Device& device, const KnownCosts& known,
                        const std::vector<Helper>& helpers, const std::atomic<bool>& wanted,
                        PlanDevice* out, std::string* helper) const {
    const DeviceCosts& costs = known.costs;
    const int layers = static_cast<int>(config_.n_layers);
    for (int unit = 0; unit < layers + 2; ++unit) {
      if (!wanted) return Abandoned();
      auto graph = BuildSegmentGraph(file_, config_, limits_, UnitSpan(unit, layers));
      if (!graph.ok()) return graph.status();
      const std::vector<Help> help = HelpWith(device, helpers, graph->graph);
      const auto needs = QueryNeeds(device, &*graph);
      if (IsGone(needs.status())) return needs.status();
      const bool can_run = needs.ok();
      if (can_run) {
        out->fixed_bytes = std::max(out->fixed_bytes, needs->scratch_bytes + needs->io_bytes);
      }
      AddBytes(device, *graph, out);
      AddTimes(costs, graph->graph, can_run, &out->decode, passes_.decode);
      AddTimes(costs, graph->graph, can_run, &out->prefill, passes_.prefill);
      if (can_run) CountHelp(known, help, graph->graph, &out->prefill, helper);
    }
    const auto with_ends = BytesWithEnds(device);
    if (!with_ends.ok()) return with_ends.status();
    out->fixed_bytes = std::max(out->fixed_bytes, *with_ends) + BytesOfIds(device);
    if (absl::Status s = CountTied(device, out); !s.ok()) return s;
    // Adds the transfer of one row of logits to the sampler.
    const int64_t width = limits_.embeddings ? config_.n_embd : config_.n_vocab;
    const double row = static_cast<double>(width) * sizeof(float);
    for (PassTimes* times : {&out->decode, &out->prefill}) {
      if (times->unit_ns.back() != kCannotRun) {
        times->unit_ns.back() += Nanoseconds(costs.out.Of(row));
      }
      times->run_ns = Nanoseconds(costs.run_ns);
    }
    return absl::OkStatus();
  }

 private:
  // Chooses the layouts of the graph's weights, and asks what memory the graph takes. Leaves the
  // weights plain if the device can't run the graph otherwise.
  absl::StatusOr<SegmentNeeds> QueryNeeds(const Device& device, SegmentGraph* graph) const {
    if (options_.pack) ChooseLayouts(device, graph, [](const std::string&) {});
    auto needs = Segment::Query(device, graph->graph);
    if (needs.ok()) return needs;
    ClearLayouts(graph);
    return Segment::Query(device, graph->graph);
  }

  void AddBytes(const Device& device, const SegmentGraph& graph, PlanDevice* out) const {
    uint64_t weights = 0, kv = 0;
    std::set<std::pair<const gguf::TensorInfo*, uint64_t>> seen;
    const bool free = options_.cpu_from_file && device.info().tier == TRINE_TIER_CPU;
    for (const WeightUse& use : graph.weights) {
      const uint64_t layout = use.packed ? use.packed->id() : TRINE_LAYOUT_PLAIN;
      if (!free && seen.emplace(use.info, layout).second) weights += WeightBytes(use);
    }
    for (const KvUse& use : graph.caches) kv += graph.graph.Bytes(use.tensor);
    out->weight_bytes.push_back(weights);
    out->kv_bytes.push_back(kv);
  }

  // Returns the scratch and IO of a segment with two layers and both ends of the model. What the
  // ends need comes in addition, and further layers need no more.
  absl::StatusOr<uint64_t> BytesWithEnds(const Device& device) const {
    const int64_t layers = config_.n_layers;
    auto graph = BuildSegmentGraph(file_, config_, limits_,
                                   {std::max<int64_t>(layers - 2, 0), layers, true, true});
    if (!graph.ok()) return graph.status();
    const auto needs = QueryNeeds(device, &*graph);
    if (IsGone(needs.status())) return needs.status();
    return needs.ok() ? needs->scratch_bytes + needs->io_bytes : 0;
  }

  // Returns the bytes of the ids of chosen experts, if the host reads them after each pass. A
  // device with its own memory has them twice.
  uint64_t BytesOfIds(const Device& device) const {
    if (!limits_.count_experts) return 0;
    const bool unified = (device.info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
    const int64_t ids = config_.n_layers * config_.experts.used * limits_.max_tokens;
    return static_cast<uint64_t>(ids) * sizeof(int32_t) * (unified ? 1 : 2);
  }

  // Counts a weight that embedding and head share once if both are on one device. Its layout may
  // then differ from the layout for each of them alone.
  absl::Status CountTied(const Device& device, PlanDevice* out) const {
    auto both = BuildSegmentGraph(file_, config_, limits_, {0, 0, true, true});
    if (!both.ok()) return both.status();
    if (options_.pack) ChooseLayouts(device, &*both, [](const std::string&) {});
    PlanDevice together;
    AddBytes(device, *both, &together);
    const uint64_t apart = out->weight_bytes.front() + out->weight_bytes.back();
    out->tied_bytes = apart - std::min(apart, together.weight_bytes[0]);
    return absl::OkStatus();
  }

  static void AddTimes(const DeviceCosts& costs, const OpGraph& graph, bool can_run,
                       PassTimes* times, const PassShape& pass) {
    const auto tokens = static_cast<double>(pass.params[kParamTokens]);
    const PredictedTime time = PredictGraph(costs, graph, pass, tokens);
    const bool known = can_run && !time.unknown;
    times->unit_ns.push_back(known ? Nanoseconds(time.ns) : kCannotRun);
    // Holds bytes until the domain's bandwidth is known.
    times->domain_ns.push_back(known ? Nanoseconds(time.weight_bytes) : 0);
  }

  // What a helper can do for a graph.
  struct Help {
    const Helper* helper = nullptr;
    RouteKind kind = RouteKind::kTwin;
    std::vector<bool> runs;  // by op
  };

  // Returns the help that each helper can give. REQUIRES: the graph has no layouts of the device's
  // own, which a helper can't read.
  std::vector<Help> HelpWith(const Device& device, const std::vector<Helper>& helpers,
                             const OpGraph& graph) const {
    std::vector<Help> all;
    for (const Helper& helper : helpers) {
      auto kind = HelpKind(device.info(), *helper.device, graph);
      if (kind == RouteKind::kTwin && !HasEnds(device, *helper.device)) kind = RouteKind::kProducts;
      const HomeWeights weights = {options_.pack, options_.file_mapped, 0};
      if (!kind || !WhyNoHelp(*kind, weights, helper.device->info()).empty()) continue;
      Help help{&helper, *kind, {}};
      for (size_t op = 0; op < graph.n_ops(); ++op) {
        help.runs.push_back(RunsOp(*helper.device, graph, op));
      }
      all.push_back(std::move(help));
    }
    return all;
  }

  // Returns whether a helper has all ops of the embedding and of the head. A helper that has those
  // of the layers alone can't run a whole stage: a stage with such an end gets help with products.
  bool HasEnds(const Device& home, const Device& helper) const {
    const auto [known, is_new] = has_ends_.emplace(&helper, false);
    if (!is_new) return known->second;
    const auto ends = BuildSegmentGraph(file_, config_, limits_, {0, 0, true, true});
    known->second = ends.ok() && HelpKind(home.info(), helper, ends->graph) == RouteKind::kTwin;
    return known->second;
  }

  void CountHelp(const KnownCosts& home, const std::vector<Help>& all, const OpGraph& graph,
                 PassTimes* times, std::string* who) const {
    int64_t& ns = times->unit_ns.back();
    if (ns == kCannotRun) return;
    // A number of tokens from which passes go to a helper holds whatever the help costs.
    const SizeRule& rule = options_.rule;
    const bool asked = rule.from_tokens > 0 && passes_.prefill_tokens >= rule.from_tokens;
    int64_t best = asked ? kCannotRun : ns;
    for (const Help& help : all) {
      bool helps = false;
      for (size_t op = 0; op < graph.n_ops(); ++op) {
        helps = helps || (help.runs[op] && IsProduct(graph, op));
      }
      if (!helps) continue;
      const double helped =
          PredictHelped(home, help.helper->costs, help.kind, help.helper->device->info().tier,
                        help.runs, graph, passes_.prefill, options_.rule);
      if (Nanoseconds(helped) >= best) continue;
      ns = best = Nanoseconds(helped);
      *who = help.helper->name;
    }
  }

  const gguf::File& file_;
  const ModelConfig& config_;
  const SegmentLimits& limits_;
  const ProblemOptions& options_;
  const NominalPasses& passes_;
  mutable std::map<const Device*, bool> has_ends_;
};

}  // namespace

NominalPasses PassesOf(const SegmentLimits& limits, const NominalRequest& request) {
  const auto context = static_cast<double>(limits.max_context);
  const int64_t prompt =
      std::max<int64_t>(std::min<int64_t>(request.prompt_tokens, limits.max_context), 1);
  const int64_t tokens = std::min(prompt, limits.max_tokens);
  const double written = request.written_tokens;
  NominalPasses passes;
  passes.prefill_tokens = static_cast<double>(tokens);
  passes.decode.positions = std::min(static_cast<double>(prompt) + written / 2, context);
  passes.prefill.positions = (static_cast<double>(prompt) + 1) / 2;
  const auto params = [](int64_t n_tokens, double positions) {
    std::vector<int64_t> values(4);
    values[kParamTokens] = n_tokens;
    values[kParamSequences] = 1;
    values[kParamOutputRows] = 1;
    values[kParamKvPositions] = static_cast<int64_t>(positions);
    return values;
  };
  passes.decode.params = params(1, passes.decode.positions);
  passes.prefill.params = params(tokens, passes.prefill.positions);
  return passes;
}

int64_t Nanoseconds(double ns) { return static_cast<int64_t>(std::llround(std::min(ns, 1e15))); }

LayerSpan UnitSpan(int unit, int layers) {
  if (unit == 0) return {0, 0, true, false};
  if (unit == layers + 1) return {layers, layers, false, true};
  return {unit - 1, unit, false, false};
}

uint64_t WeightBytes(const WeightUse& use) {
  return use.packed ? use.packed->packed_bytes() : use.info->bytes;
}

absl::Status Abandoned() { return absl::CancelledError("the placement is no longer asked for"); }

bool IsGone(const absl::Status& status) {
  return !FaultyDevice(status).empty() && !absl::IsResourceExhausted(status);
}

absl::Status DescribeDevice(const DescribeInputs& inputs, const Device& device,
                            const KnownCosts& known, const std::vector<Helper>& helpers,
                            const std::atomic<bool>& wanted, PlanDevice* out, std::string* helper) {
  return DeviceDescriber(inputs).Describe(device, known, helpers, wanted, out, helper);
}

}  // namespace trine
