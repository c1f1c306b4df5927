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
#include "runtime/model/split/predict_split.h"
#include "runtime/model/split/tensor_places.h"
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

// Returns the bytes of a weight in memory. Weights in the file's own pages count, too: the system
// can drop them, but then each token reads them from the disk.
uint64_t WeightBytesOf(const WeightUse& use) {
  return use.packed ? use.packed->packed_bytes() : use.info->bytes;
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
  void AddBytes(const Device& device, const SegmentGraph& graph, PlanDevice* out) const {
    uint64_t weights = 0, kv = 0;
    std::set<std::pair<const gguf::TensorInfo*, uint64_t>> seen;
    const bool free = options_.cpu_from_file && device.info().tier == TRINE_TIER_CPU;
    for (const WeightUse& use : graph.weights) {
      const uint64_t layout = use.packed ? use.packed->id() : TRINE_LAYOUT_PLAIN;
      if (!free && seen.emplace(use.info, layout).second) weights += WeightBytesOf(use);
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

// Describes a device with some weights of its layers on other devices.
class PartsDescriber {
 public:
  // `costs`: by the name of a device. All arguments must outlive this object.
  PartsDescriber(const gguf::File& file, const ModelConfig& config, const SegmentLimits& limits,
                 const ProblemOptions& options, const Passes& passes, const TensorPlaces& places,
                 const std::map<std::string, KnownCosts>& costs)
      : file_(file),
        config_(config),
        limits_(limits),
        options_(options),
        passes_(passes),
        places_(places),
        costs_(costs) {}

  // Replaces bytes and times of the units whose weights are elsewhere. Adds to `shares`, by the
  // name of a device, what that device has and does.
  absl::Status Describe(const NamedDevice& home, const std::atomic<bool>& wanted, PlanDevice* out,
                        std::map<std::string, PlanShare>* shares) const {
    const int layers = static_cast<int>(config_.n_layers);
    for (int unit = 0; unit < layers + 2; ++unit) {
      if (!wanted) return absl::CancelledError("nobody waits for it any more");
      const LayerSpan span = SpanOf(unit, layers);
      auto graph = BuildSegmentGraph(file_, config_, limits_, span, {.finish = false});
      if (!graph.ok()) return graph.status();
      const SegmentOwners owners = FindOwners({home.device, home.name, span}, *graph, places_);
      if (!owners.elsewhere()) continue;
      const auto u = static_cast<size_t>(unit);
      if (absl::Status s = CountBytes(span, *graph, owners, u, out, shares); !s.ok()) return s;
      const bool can_run = CanRunAll(*graph, owners);
      CountTimes(*graph, owners, can_run, passes_.decode, &PlanShare::decode_ns, u, &out->decode,
                 shares);
      CountTimes(*graph, owners, can_run, passes_.prefill, &PlanShare::prefill_ns, u, &out->prefill,
                 shares);
    }
    return absl::OkStatus();
  }

 private:
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

  static bool CanRunAll(const SegmentGraph& graph, const SegmentOwners& owners) {
    for (size_t op = 0; op < owners.ops.size(); ++op) {
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
    auto graph = BuildSegmentGraph(file_, config_, limits_, span);
    if (!graph.ok()) return graph.status();
    if (options_.pack) ChooseLayouts(device, &*graph, [](const std::string&) {});
    std::map<const gguf::TensorInfo*, uint64_t> bytes;
    for (const WeightUse& use : graph->weights) bytes[use.info] = WeightBytesOf(use);
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

  void CountTimes(const SegmentGraph& graph, const SegmentOwners& owners, bool can_run,
                  const PassShape& pass, std::vector<int64_t> PlanShare::*busy, size_t unit,
                  PassTimes* times, std::map<std::string, PlanShare>* shares) const {
    std::vector<const DeviceCosts*> costs;
    for (const NamedDevice& device : owners.devices) {
      costs.push_back(&costs_.at(device.name).costs);
    }
    const SplitTime time = PredictSplit(graph, owners, costs, pass);
    bool known = can_run && !time.unknown;
    double ns = time.ns;
    // Passes that read prompts may fetch the weights instead.
    if (known && busy == &PlanShare::prefill_ns && MayFetch(owners)) {
      double flops = 0;
      ns = std::min(ns, PredictFetched(*costs[0], graph.graph, owners, pass, &flops, &known));
    }
    // The main device's last piece of a layer and its first of the next one are one piece.
    ns = std::max(ns - costs[0]->run_ns, 0.0);
    times->unit_ns[unit] = known ? Nanoseconds(ns) : kCannotRun;
    times->domain_ns[unit] = known ? Nanoseconds(time.weight_bytes) : 0;
    for (size_t d = 1; d < owners.devices.size(); ++d) {
      (ShareOf(owners.devices[d].name, shares).*busy)[unit] =
          known ? Nanoseconds(time.busy_ns[d]) : 0;
    }
  }

  const gguf::File& file_;
  const ModelConfig& config_;
  const SegmentLimits& limits_;
  const ProblemOptions& options_;
  const Passes& passes_;
  const TensorPlaces& places_;
  const std::map<std::string, KnownCosts>& costs_;
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
  device->elsewhere.clear();
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

// Describes a device with parts elsewhere as DescribeWatched describes one without. `begun`: the
// device's first entry. `all`: the devices of the problem, in the order of its first entries.
absl::StatusOr<PlanDevice> DescribePartsWatched(std::shared_ptr<const DescribeInputs> inputs,
                                                size_t home, const std::vector<Found>& all,
                                                const PartPlaces& parts, PlanDevice begun,
                                                DeviceSet* devices) {
  TensorPlaces places;
  std::map<std::string, KnownCosts> costs;
  std::map<std::string, NamedDevice> opened;
  std::vector<NamedDevice> asked;
  std::set<std::string> needed = {all[home].device->tier_name};
  for (const auto& [tensor, device] : parts.tensors) needed.insert(device);
  for (const DeviceShare& share : parts.rows) needed.insert(share.device);
  for (const Found& one : all) {
    const std::string& name = one.device->tier_name;
    if (needed.count(name) == 0) continue;
    // A device that gets no layers may still have parts, where the user put them.
    auto device = devices->Open(name);
    if (!device.ok()) return OnDevice(name, device.status());
    asked.push_back({*std::move(device), name});
    opened.emplace(name, asked.back());
    costs.emplace(name, one.known);
  }
  for (const auto& [tensor, device] : parts.tensors) {
    if (opened.count(device) != 0) places.tensors.emplace(tensor, opened.at(device));
  }
  for (const DeviceShare& share : parts.rows) {
    if (opened.count(share.device) != 0) {
      places.rows.push_back({opened.at(share.device), share.share});
    }
  }
  const auto wanted = std::make_shared<std::atomic<bool>>(true);
  const NamedDevice main = opened.at(all[home].device->tier_name);
  std::map<std::string, size_t> indices;
  for (size_t i = 0; i < all.size(); ++i) indices[all[i].device->tier_name] = i;
  const auto describe = [inputs = std::move(inputs), wanted, main, places = std::move(places),
                         costs = std::move(costs), indices = std::move(indices),
                         begun = std::move(begun)]() -> absl::StatusOr<PlanDevice> {
    PlanDevice described = begun;
    std::map<std::string, PlanShare> shares;
    const PartsDescriber describer(*inputs->file, inputs->config, inputs->limits, inputs->options,
                                   inputs->passes, places, costs);
    const absl::Status s = describer.Describe(main, *wanted, &described, &shares);
    if (!s.ok()) return s;
    described.elsewhere.clear();
    for (auto& [name, share] : shares) {
      share.device = indices.at(name);
      described.elsewhere.push_back(std::move(share));
    }
    return described;
  };
  if (std::none_of(asked.begin(), asked.end(),
                   [&](const NamedDevice& d) { return devices->IsWatched(d.name); })) {
    return describe();
  }
  Watched<absl::StatusOr<PlanDevice>> work(describe);
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
  for (size_t i = 0; i < all.size(); ++i) {
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
  for (size_t i = 0; i < plan->devices.size(); ++i) {
    plan->decode_transfer_ns.emplace_back();
    plan->prefill_transfer_ns.emplace_back();
    for (size_t j = 0; j < plan->devices.size(); ++j) {
      const size_t from = FirstEntry(*plan, i), to = FirstEntry(*plan, j);
      // Rounds both parts separately: the search is shorter if the times of transfers are exact
      // sums. Entries of one device are one segment when the model runs.
      const auto move = [&](double bytes) {
        if (from == to) return int64_t{0};
        return Nanoseconds(all[from].known.costs.out.Of(bytes)) +
               Nanoseconds(all[to].known.costs.in.Of(bytes));
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

// Says in a word what the user has placed.
std::string WhatIsFixed(const PartPlaces& fixed) {
  if (!fixed.rows.empty()) return "rows";
  const bool experts = std::all_of(fixed.tensors.begin(), fixed.tensors.end(), [](const auto& one) {
    return one.first.find("_exps.") != std::string::npos;
  });
  return experts ? "experts" : "weights";
}

// Applies the user's places of parts to all devices, and adds the modes. Leaves out a device whose
// parts can't be described, and a mode.
absl::Status AddParts(const std::shared_ptr<const DescribeInputs>& inputs,
                      const std::vector<Found>& all, DeviceSet* devices,
                      PlacementProblem* problem) {
  PlanProblem& plan = problem->plan;
  const ProblemOptions& options = inputs->options;
  const auto describe = [&](size_t home, const PartPlaces& parts) -> absl::StatusOr<PlanDevice> {
    auto described = DescribePartsWatched(inputs, home, all, parts, plan.devices[home], devices);
    if (IsGone(described.status())) {
      problem->failed.push_back({FaultyDevice(described.status()), described.status()});
      if (absl::IsDeadlineExceeded(described.status())) devices->host().ReplaceTeam();
      devices->Forget(FaultyDevice(described.status()));
    } else if (described.ok() && !MakesSense(*described)) {
      return absl::InternalError("its sizes or times are beyond reason");
    }
    return described;
  };
  for (size_t i = 0; i < all.size() && !options.fixed.empty(); ++i) {
    if (all[i].opened == nullptr || !plan.devices[i].left_out.empty()) continue;
    auto described = describe(i, options.fixed);
    if (described.ok()) {
      for (PlanShare& share : described->elsewhere) share.what = WhatIsFixed(options.fixed);
      plan.devices[i] = *std::move(described);
    } else {
      plan.devices[i].left_out = std::string(described.status().message());
      RunNothing(static_cast<size_t>(plan.units()), &plan.devices[i]);
    }
    if (!problem->failed.empty()) return absl::OkStatus();  // the caller begins again
  }
  for (const ModeOption& mode : options.modes) {
    const auto named = [&](const Found& found) { return found.device->tier_name == mode.device; };
    const auto home =
        static_cast<size_t>(std::find_if(all.begin(), all.end(), named) - all.begin());
    if (home == all.size() || all[home].opened == nullptr) continue;
    if (!plan.devices[home].left_out.empty()) continue;
    PartPlaces parts = options.fixed;
    parts.tensors.insert(mode.tensors.begin(), mode.tensors.end());
    auto described = describe(home, parts);
    if (!problem->failed.empty()) return absl::OkStatus();
    if (!described.ok() || described->elsewhere.empty()) continue;
    described->mode_of = home;
    for (PlanShare& share : described->elsewhere) share.what = mode.what;
    plan.devices.push_back(*std::move(described));
    problem->measured.push_back(problem->measured[home]);
    problem->guessed.push_back(problem->guessed[home]);
    problem->busy.push_back(problem->busy[home]);
    problem->helpers.emplace_back();
  }
  return absl::OkStatus();
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
  if (absl::Status s = AddParts(inputs, all, devices, &result); !s.ok()) return s;
  SpreadDomains(all, &plan);
  const double row = static_cast<double>(config.n_embd) * sizeof(float);
  AddTransfers(all, row, passes.prefill_tokens, &plan);
  return result;
}

}  // namespace trine
