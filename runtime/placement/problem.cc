#include "runtime/placement/problem.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/cost/cost_model.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/run/decode_bytes.h"
#include "runtime/model/run/route_plan.h"
#include "runtime/model/weights/packed_weights.h"
#include "runtime/placement/known_costs.h"

namespace trine {
namespace {

int64_t Nanoseconds(double ns) { return static_cast<int64_t>(std::llround(std::min(ns, 1e15))); }

// Returns the span of layers that a unit of the planner stands for.
LayerSpan SpanOf(int unit, int layers) {
  if (unit == 0) return {0, 0, true, false};
  if (unit == layers + 1) return {layers, layers, false, true};
  return {unit - 1, unit, false, false};
}

// The two passes whose times are predicted.
struct Passes {
  PassShape decode, prefill;
  double prefill_tokens = 1;
};

Passes NominalPasses(const SegmentLimits& limits, const NominalRequest& request) {
  const auto context = static_cast<double>(limits.max_context);
  const int64_t prompt =
      std::max<int64_t>(std::min<int64_t>(request.prompt_tokens, limits.max_context), 1);
  const int64_t tokens = std::min(prompt, limits.max_tokens);
  const double written = request.written_tokens;
  Passes passes;
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

// Returns whether the device has failed, and not only refused something that it can't do.
bool IsGone(const absl::Status& status) {
  return !FaultyDevice(status).empty() && !absl::IsResourceExhausted(status);
}

// A device that may help, and its costs.
struct Helper {
  std::string name;
  KnownCosts costs;
  std::shared_ptr<Device> device;
};

class DeviceDescriber {
 public:
  DeviceDescriber(const gguf::File& file, const ModelConfig& config, const SegmentLimits& limits,
                  const ProblemOptions& options, const Passes& passes)
      : file_(file), config_(config), limits_(limits), options_(options), passes_(passes) {}

  // Fills in bytes and times of all units.
  absl::Status Describe(const Device& device, const KnownCosts& known,
                        const std::vector<Helper>& helpers, const std::atomic<bool>& wanted,
                        PlanDevice* out, std::string* helper) const {
    const DeviceCosts& costs = known.costs;
    const int layers = static_cast<int>(config_.n_layers);
    for (int unit = 0; unit < layers + 2; ++unit) {
      if (!wanted) return absl::CancelledError("nobody waits for it any more");
      auto graph = BuildSegmentGraph(file_, config_, limits_, SpanOf(unit, layers));
      if (!graph.ok()) return graph.status();
      const std::vector<Help> help = HelpWith(device, helpers, graph->graph);
      if (options_.pack) ChooseLayouts(device, &*graph, [](const std::string&) {});
      auto needs = Segment::Query(device, graph->graph);
      if (!needs.ok()) {
        ClearLayouts(&*graph);
        needs = Segment::Query(device, graph->graph);
      }
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
  // Weights in the file's own pages count, too: the system can drop them, but then each token reads
  // them from the disk.
  static uint64_t BytesOf(const WeightUse& use) {
    return use.packed ? use.packed->packed_bytes() : use.info->bytes;
  }

  void AddBytes(const Device& device, const SegmentGraph& graph, PlanDevice* out) const {
    uint64_t weights = 0, kv = 0;
    std::set<std::pair<const gguf::TensorInfo*, uint64_t>> seen;
    const bool free = options_.cpu_from_file && device.info().tier == TRINE_TIER_CPU;
    for (const WeightUse& use : graph.weights) {
      const uint64_t layout = use.packed ? use.packed->id() : TRINE_LAYOUT_PLAIN;
      if (!free && seen.emplace(use.info, layout).second) weights += BytesOf(use);
    }
    for (const KvUse& use : graph.caches) kv += graph.graph.Bytes(use.tensor);
    out->weight_bytes.push_back(weights);
    out->kv_bytes.push_back(kv);
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
  const Passes& passes_;
  mutable std::map<const Device*, bool> has_ends_;
};

// Returns whether the numbers are far below where sums would overflow.
bool MakesSense(const PlanDevice& device) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  constexpr int64_t kMostNs = int64_t{1} << 45;
  const auto bytes = [](uint64_t n) { return n < kMostBytes; };
  const auto time = [](int64_t ns) { return ns == kCannotRun || (ns >= 0 && ns < kMostNs); };
  const auto times = [&](const PassTimes& pass) {
    return time(pass.run_ns) && std::all_of(pass.unit_ns.begin(), pass.unit_ns.end(), time);
  };
  return bytes(device.fixed_bytes) &&
         std::all_of(device.weight_bytes.begin(), device.weight_bytes.end(), bytes) &&
         std::all_of(device.kv_bytes.begin(), device.kv_bytes.end(), bytes) &&
         times(device.decode) && times(device.prefill);
}

// Makes a device unable to run anything. It is listed only to show the reason why it is left out.
void RunNothing(size_t units, PlanDevice* device) {
  device->fixed_bytes = device->tied_bytes = 0;
  device->weight_bytes.assign(units, 0);
  device->kv_bytes.clear();
  for (PassTimes* times : {&device->decode, &device->prefill}) {
    times->unit_ns.assign(units, kCannotRun);
    times->domain_ns.assign(units, 0);
    times->run_ns = 0;
  }
}

size_t IndexOf(const std::string& name, std::vector<std::string>* names) {
  const auto found = std::find(names->begin(), names->end(), name);
  if (found != names->end()) return static_cast<size_t>(found - names->begin());
  names->push_back(name);
  return names->size() - 1;
}

// A candidate and its known costs.
struct Found {
  const InventoryDevice* device = nullptr;
  KnownCosts known;
  std::shared_ptr<Device> opened;  // null: it is left out
};

absl::StatusOr<Found> Find(const CandidateDevice& candidate, const Calibration& calibration,
                           double bytes_per_token, DeviceSet* devices) {
  const Inventory& inventory = devices->inventory();
  const auto found =
      std::find_if(inventory.devices.begin(), inventory.devices.end(),
                   [&](const InventoryDevice& d) { return d.tier_name == candidate.name; });
  if (found == inventory.devices.end()) {
    return absl::NotFoundError(absl::StrCat("there is no device ", candidate.name));
  }
  const uint32_t threads = devices->host().table()->worker_count;
  return Found{&*found,
               WithReuse(FindCosts(calibration, inventory, *found, threads), bytes_per_token),
               nullptr};
}

// The inputs for the description of a device. The thread that describes it owns them, because the
// thread may be abandoned.
struct DescribeInputs {
  std::shared_ptr<const gguf::File> file;
  ModelConfig config;
  SegmentLimits limits;
  ProblemOptions options;
  Passes passes;
};

struct Described {
  PlanDevice device;
  std::string helper;
};

// Describes a device on a watched thread, since the device may hang. So may a helper, which is
// asked for the ops that it has. The error names the device that failed.
absl::StatusOr<Described> DescribeWatched(std::shared_ptr<const DescribeInputs> inputs,
                                          const Found& found, std::vector<Helper> helpers,
                                          PlanDevice begun, DeviceSet* devices) {
  const auto wanted = std::make_shared<std::atomic<bool>>(true);
  std::vector<NamedDevice> asked = {{found.opened, found.device->tier_name}};
  for (const Helper& helper : helpers) asked.push_back({helper.device, helper.name});
  const auto describe = [inputs = std::move(inputs), wanted, device = found.opened,
                         known = found.known, helpers = std::move(helpers),
                         begun = std::move(begun)]() -> absl::StatusOr<Described> {
    Described described{begun, ""};
    const DeviceDescriber describer(*inputs->file, inputs->config, inputs->limits, inputs->options,
                                    inputs->passes);
    const absl::Status s =
        describer.Describe(*device, known, helpers, *wanted, &described.device, &described.helper);
    if (!s.ok()) return s;
    return described;
  };
  const bool watched = std::any_of(
      asked.begin(), asked.end(), [&](const NamedDevice& d) { return devices->IsWatched(d.name); });
  if (!watched) return describe();
  Watched<absl::StatusOr<Described>> work(describe);
  auto described = devices->WaitFor(&work, asked);
  *wanted = false;
  return described;
}

// Returns the devices that may help a device that is given layers.
std::vector<Helper> HelpersOf(const Found& home, const std::vector<Found>& all,
                              const ProblemOptions& options) {
  std::vector<Helper> helpers;
  for (const Found& other : all) {
    if (!options.dispatch || other.opened == nullptr || other.opened == home.opened) continue;
    if (options.helpers && options.helpers->count(other.device->tier_name) == 0) continue;
    helpers.push_back({other.device->tier_name, other.known, other.opened});
  }
  return helpers;
}

// Converts bytes to the time that they keep the domain busy.
void SpreadDomains(const std::vector<Found>& all, PlanProblem* plan) {
  std::vector<double> bandwidth(plan->devices.size(), 0);  // by domain
  for (size_t i = 0; i < plan->devices.size(); ++i) {
    double& most = bandwidth[plan->devices[i].domain];
    most = std::max(most, all[i].known.costs.bytes_per_second);
  }
  for (PlanDevice& device : plan->devices) {
    const double rate = bandwidth[device.domain];
    for (PassTimes* times : {&device.decode, &device.prefill}) {
      for (size_t u = 0; u < times->domain_ns.size(); ++u) {
        const double ns = rate > 0 ? static_cast<double>(times->domain_ns[u]) / rate * 1e9 : 0;
        const int64_t most = times->unit_ns[u] == kCannotRun ? 0 : times->unit_ns[u];
        times->domain_ns[u] = std::min(Nanoseconds(ns), most);
      }
    }
  }
}

void AddTransfers(const std::vector<Found>& all, double row_bytes, double prefill_tokens,
                  PlanProblem* plan) {
  for (const Found& from : all) {
    plan->decode_transfer_ns.emplace_back();
    plan->prefill_transfer_ns.emplace_back();
    for (const Found& to : all) {
      // Rounds both parts separately: the search is shorter if the times of transfers are exact
      // sums.
      const auto move = [&](double bytes) {
        return Nanoseconds(from.known.costs.out.Of(bytes)) +
               Nanoseconds(to.known.costs.in.Of(bytes));
      };
      plan->decode_transfer_ns.back().push_back(move(row_bytes));
      plan->prefill_transfer_ns.back().push_back(move(row_bytes * prefill_tokens));
    }
  }
}

void AddPools(const Inventory& inventory, const std::vector<std::string>& names,
              PlanProblem* plan) {
  for (const std::string& name : names) {
    const auto pool = std::find_if(inventory.pools.begin(), inventory.pools.end(),
                                   [&](const MemoryPool& p) { return p.name == name; });
    const bool known = pool != inventory.pools.end() && pool->available_bytes != 0;
    plan->pools.push_back({name, known ? pool->available_bytes : kNoLimit});
  }
}

}  // namespace

absl::StatusOr<PlacementProblem> DescribeProblem(
    std::shared_ptr<const gguf::File> file, const ModelConfig& config, const SegmentLimits& limits,
    const Calibration& calibration, const ProblemOptions& options, DeviceSet* devices) {
  const Passes passes = NominalPasses(limits, options.request);
  PlacementProblem result;
  PlanProblem& plan = result.plan;
  plan.layers = static_cast<int>(config.n_layers);
  plan.prefill_tokens = static_cast<int>(passes.prefill_tokens);
  const auto reads = CountDecodeBytes(*file, config, limits);
  if (!reads.ok()) return reads.status();
  const double bytes_per_token =
      static_cast<double>(reads->weights) +
      static_cast<double>(reads->Kv(static_cast<int64_t>(passes.decode.positions)));
  std::vector<std::string> pools, domains;
  std::vector<Found> all;
  for (const CandidateDevice& candidate : options.candidates) {
    auto found = Find(candidate, calibration, bytes_per_token, devices);
    if (!found.ok()) return found.status();
    PlanDevice device;
    device.name = found->device->tier_name;
    device.tier = found->device->tier;
    device.left_out = candidate.left_out;
    device.pool = IndexOf(found->device->memory_pool, &pools);
    device.domain = IndexOf(found->device->bandwidth_domain, &domains);
    if (device.left_out.empty()) {
      auto open = devices->Open(device.name);
      if (open.ok()) {
        found->opened = *std::move(open);
      } else {
        device.left_out = std::string(open.status().message());
        const absl::Status why = OnDevice(device.name, open.status());
        if (!FaultyDevice(why).empty()) result.failed.push_back({device.name, why});
      }
    }
    result.measured.push_back(found->known.measured);
    result.guessed.push_back(found->known.guessed);
    result.busy.push_back(found->known.busy);
    plan.devices.push_back(std::move(device));
    all.push_back(*std::move(found));
  }
  result.helpers.resize(all.size());
  const auto inputs = std::make_shared<const DescribeInputs>(
      DescribeInputs{std::move(file), config, limits, options, passes});
  for (size_t i = 0; i < all.size(); ++i) {
    PlanDevice& device = plan.devices[i];
    if (all[i].opened != nullptr) {
      const uint64_t free = all[i].opened->info().memory_free;
      if (device.tier != "cpu" && free != 0) device.limit_bytes = free;
      const std::vector<Helper> helpers = HelpersOf(all[i], all, options);
      auto described = DescribeWatched(inputs, all[i], helpers, device, devices);
      if (IsGone(described.status())) {
        // It may be a helper that failed. The other devices' handles may be in use by the thread
        // that was given up, so the caller describes the problem again.
        const std::string faulty = FaultyDevice(described.status());
        result.failed.push_back({faulty, described.status()});
        if (absl::IsDeadlineExceeded(described.status())) devices->host().ReplaceTeam();
        devices->Forget(faulty);
        return result;
      } else if (!described.ok()) {
        return described.status();
      } else {
        device = std::move(described->device);
        result.helpers[i] = std::move(described->helper);
      }
      if (!MakesSense(device)) device.left_out = "its sizes or times are beyond reason";
    }
    if (!device.left_out.empty()) RunNothing(static_cast<size_t>(plan.units()), &device);
    if (const auto limit = options.memory_limits.find(device.name);
        limit != options.memory_limits.end()) {
      device.limit_bytes = std::min(device.limit_bytes, limit->second);
    }
  }
  AddPools(devices->inventory(), pools, &plan);
  SpreadDomains(all, &plan);
  const double row = static_cast<double>(config.n_embd) * sizeof(float);
  AddTransfers(all, row, passes.prefill_tokens, &plan);
  return result;
}

}  // namespace trine
