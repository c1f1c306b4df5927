#include "runtime/model/run/route_plan.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/segment.h"
#include "runtime/model/arch/graph_taps.h"
#include "runtime/model/split/predict_split.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

// The most helped routes of a stage. Each route needs its own plans.
constexpr size_t kMostRoutes = 2;

// Returns the shape with which passes of `tokens` are predicted.
PassShape PassOf(const SegmentLimits& limits, int64_t tokens) {
  constexpr int64_t kPrompt = 512, kWritten = 64;
  const int64_t prompt = std::min(kPrompt, limits.max_context);
  PassShape pass;
  pass.positions = tokens < 16
                       ? static_cast<double>(std::min(prompt + kWritten, limits.max_context))
                       : static_cast<double>(prompt + 1) / 2;
  pass.params.resize(4);
  pass.params[kParamTokens] = tokens;
  pass.params[kParamSequences] = 1;
  pass.params[kParamOutputRows] = 1;  // one row per sequence, whatever the limits allow
  pass.params[kParamKvPositions] = static_cast<int64_t>(pass.positions);
  return pass;
}

// Returns the times of the whole graph on either device.
SizedWork AllOfIt(const KnownCosts& mine, const KnownCosts& theirs, const OpGraph& graph,
                  const PassShape& pass, bool* known) {
  const auto tokens = static_cast<double>(pass.params[kParamTokens]);
  const PredictedTime there = PredictUnpacked(theirs.costs, graph, pass, tokens);
  SizedWork work;
  for (size_t op = 0; op < graph.n_ops(); ++op) {
    if (IsProduct(graph, op)) work.flops += ProductFlops(graph, op, pass);
  }
  work.home_ns = PredictGraph(mine.costs, graph, pass, tokens).ns;
  work.away_ns = there.ns;
  work.measured = mine.measured && theirs.measured;
  *known = !there.unknown;
  return work;
}

// Returns the times of one product: at home, and on the helper, which borrows the weights.
SizedWork OneProduct(const KnownCosts& mine, const KnownCosts& theirs, RouteKind kind,
                     const OpGraph& graph, size_t op, const PassShape& pass, bool* known) {
  const BorrowedWeights weights =
      kind == RouteKind::kStreamed ? BorrowedWeights::kStreamed : BorrowedWeights::kShared;
  const PredictedTime there = PredictBorrowed(theirs.costs, weights, graph, op, pass);
  *known = !there.unknown;
  return {ProductFlops(graph, op, pass), PredictOp(mine.costs, graph, op, pass).ns, there.ns,
          mine.measured && theirs.measured};
}

// Decides by times if they are known. Large work goes to a GPU even if the GPU was not measured.
// Another helper may share cores with the home, so guessed times decide.
SizeDecision DecideKnown(SizeRule rule, uint32_t tier, int64_t tokens, const SizedWork& work,
                         bool known) {
  if (!known) return {false, "its times are not known"};
  const bool gpu = tier == TRINE_TIER_IGPU || tier == TRINE_TIER_DGPU;
  if (!gpu) rule.large_flops = std::numeric_limits<double>::infinity();
  return Decide(rule, tokens, work);
}

bool IsPartOf(const std::vector<bool>& part, const std::vector<bool>& all) {
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] && !all[i]) return false;
  }
  return true;
}

// Gives each class of passes a route whose helper runs the ops that are faster there for the class.
// If there are too many routes, a class takes a route with fewer ops, all of which are faster on
// the helper for it.
void ChooseRoutes(const std::vector<std::vector<bool>>& away, RoutePlan* plan) {
  const auto any = [](const std::vector<bool>& ops) {
    return std::find(ops.begin(), ops.end(), true) != ops.end();
  };
  std::vector<std::vector<bool>>& routes = plan->helper_ops;
  for (const std::vector<bool>& ops : away) {
    const bool known = std::find(routes.begin(), routes.end(), ops) != routes.end();
    if (any(ops) && !known) routes.push_back(ops);
  }
  // The routes of the smallest and of the largest class stay.
  while (routes.size() > kMostRoutes) {
    routes.erase(routes.begin() + static_cast<ptrdiff_t>(routes.size() / 2));
  }
  plan->class_routes.assign(away.size(), 0);
  for (size_t c = 0; c < away.size(); ++c) {
    int64_t most = 0;
    for (size_t r = 0; r < routes.size(); ++r) {
      const int64_t ops = std::count(routes[r].begin(), routes[r].end(), true);
      if (!IsPartOf(routes[r], away[c]) || ops <= most) continue;
      plan->class_routes[c] = r + 1;
      most = ops;
    }
  }
}

class Planner {
 public:
  Planner(const SegmentPlace& home, const SegmentGraph& segment, const SegmentLimits& limits,
          const DispatchOptions& options,
          const std::function<bool(const gguf::TensorInfo&)>& can_stream)
      : home_(home),
        graph_(segment.graph),
        limits_(limits),
        options_(options),
        can_stream_(can_stream),
        classes_(TokenClasses(options.rule, limits.max_tokens)) {
    for (const WeightUse& use : segment.weights) weights_[use.tensor] = use.info;
  }

  struct Candidate {
    RoutePlan plan;
    double gain_ns = 0;
    // [kind of work][tokens]: the decision. Layers repeat, so one entry stands for all layers.
    std::map<std::string, std::map<int64_t, SizeDecision>> decisions;
  };

  // Logs lines like "ffn_up.weight q4_0 [64, 96]: cpu up to 63 tokens (why), dgpu0 from 64 on
  // (why)".
  void Log(const Candidate& candidate) const {
    if (!options_.log) return;
    for (const auto& [what, by_tokens] : candidate.decisions) {
      std::string line;
      for (auto it = by_tokens.begin(); it != by_tokens.end();) {
        const bool away = it->second.away;
        const auto end =
            std::find_if(it, by_tokens.end(), [&](const auto& d) { return d.second.away != away; });
        const bool last = end == by_tokens.end();
        // The reason at the size that is nearest to the opposite decision.
        const SizeDecision& why = last && away ? it->second : std::prev(end)->second;
        absl::StrAppend(&line, line.empty() ? "" : ", ",
                        away ? candidate.plan.helper.name : home_.device_name,
                        last ? absl::StrCat(" from ", it->first, " on")
                             : absl::StrCat(" up to ", end->first - 1),
                        " (", why.reason, ")");
        it = end;
      }
      const int64_t first = home_.span.begin, last = std::max(first, home_.span.end - 1);
      const std::string layers =
          first == last ? absl::StrCat("layer ", first) : absl::StrCat("layers ", first, "-", last);
      options_.log(absl::StrCat("dispatch: ", home_.device_name, ", ", layers, ", ", what,
                                ", tokens: ", line));
    }
  }

  Candidate Try(const NamedDevice& helper, RouteKind kind) {
    Candidate candidate;
    candidate.plan.helper = helper;
    candidate.plan.kind = kind;
    candidate.plan.classes = classes_;
    candidate.plan.at_least = options_.rule.at_least;
    const KnownCosts& mine = options_.costs.at(home_.device_name);
    const KnownCosts& theirs = options_.costs.at(helper.name);
    std::vector<std::vector<bool>> away;  // by class
    for (size_t c = 0; c < classes_.size(); ++c) {
      away.push_back(kind == RouteKind::kTwin ? TryAll(c, mine, theirs, &candidate)
                                              : TryProducts(c, mine, theirs, &candidate));
    }
    ChooseRoutes(away, &candidate.plan);
    return candidate;
  }

  // Tries to run all ops at home, with the weights that are elsewhere fetched.
  Candidate TryFetch(const SegmentGraph& segment, const SegmentOwners& owners) {
    Candidate candidate;
    RoutePlan& plan = candidate.plan;
    plan.helper = {home_.device, home_.device_name};
    plan.kind = RouteKind::kFetched;
    plan.classes = classes_;
    plan.at_least = options_.rule.at_least;
    std::vector<const DeviceCosts*> costs;
    bool measured = true;
    for (const NamedDevice& device : owners.devices) {
      const KnownCosts& known = options_.costs.at(device.name);
      costs.push_back(&known.costs);
      measured = measured && known.measured;
    }
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      if (!owners.ops[op].empty() && IsProduct(graph_, op)) {
        plan.fetched.insert(weights_.at(graph_.op(op).in[0]));
      }
    }
    std::vector<std::vector<bool>> away;
    for (const int64_t tokens : classes_) {
      const PassShape pass = PassOf(limits_, tokens);
      const SplitTime split = PredictSplit(segment, owners, costs, pass);
      SizedWork work;
      bool known = !split.unknown;
      work.home_ns = split.ns;
      work.away_ns = PredictFetched(*costs[0], graph_, owners, pass, &work.flops, &known);
      work.measured = measured;
      const SizeDecision decision =
          DecideKnown(options_.rule, home_.device->info().tier, tokens, work, known);
      if (options_.log) candidate.decisions["weights elsewhere"].try_emplace(tokens, decision);
      if (decision.away) candidate.gain_ns += work.home_ns - work.away_ns;
      away.emplace_back(graph_.n_ops(), decision.away);
    }
    ChooseRoutes(away, &plan);
    return candidate;
  }

 private:
  void Note(Candidate* candidate, const std::string& what, size_t c, const SizeDecision& decision) {
    if (options_.log) candidate->decisions[what].try_emplace(classes_[c], decision);
  }

  std::vector<bool> TryAll(size_t c, const KnownCosts& mine, const KnownCosts& theirs,
                           Candidate* candidate) {
    bool known = false;
    const SizedWork work = AllOfIt(mine, theirs, graph_, PassOf(limits_, classes_[c]), &known);
    const SizeDecision decision = DecideKnown(
        options_.rule, candidate->plan.helper.device->info().tier, classes_[c], work, known);
    Note(candidate, "all of it", c, decision);
    if (decision.away) candidate->gain_ns += work.home_ns - work.away_ns;
    return std::vector<bool>(graph_.n_ops(), decision.away);
  }

  std::vector<bool> TryProducts(size_t c, const KnownCosts& mine, const KnownCosts& theirs,
                                Candidate* candidate) {
    const Device& helper = *candidate->plan.helper.device;
    std::vector<bool> away(graph_.n_ops(), false);
    const PassShape pass = PassOf(limits_, classes_[c]);
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      if (!IsProduct(graph_, op)) continue;
      const gguf::TensorInfo* weight = weights_.at(graph_.op(op).in[0]);
      const std::string reason = Refusal(helper, op, *weight);
      SizeDecision decision{false, reason};
      if (reason.empty()) {
        bool known = false;
        const SizedWork work =
            OneProduct(mine, theirs, candidate->plan.kind, graph_, op, pass, &known);
        decision = DecideKnown(options_.rule, helper.info().tier, classes_[c], work, known);
        if (decision.away) candidate->gain_ns += work.home_ns - work.away_ns;
      }
      Note(candidate, NameOf(*weight), c, decision);
      away[op] = decision.away;
    }
    constexpr size_t kHelper = 1;
    std::vector<OpOwners> owners(graph_.n_ops());
    for (size_t op = 0; op < owners.size(); ++op) {
      if (away[op]) owners[op] = {{kHelper, 0, 0}};
    }
    JoinOps(
        graph_, [&](size_t, size_t op) { return RunsOp(helper, graph_, op); }, &owners);
    for (size_t op = 0; op < owners.size(); ++op) away[op] = !owners[op].empty();
    return away;
  }

  // Returns why a product can't run on the helper; "": it can.
  std::string Refusal(const Device& helper, size_t op, const gguf::TensorInfo& weight) {
    if (!can_stream_(weight)) return "the host has its weights packed only";
    const std::string name = NameOf(weight);
    const auto [found, is_new] = refusals_.try_emplace({&helper, name});
    if (is_new) {
      if (!RunsOp(helper, graph_, op)) found->second = "it is refused there";
    }
    return found->second;
  }

  // Returns a name without the layer's number: "ffn_up.weight q4_0 [4096, 14336]".
  std::string NameOf(const gguf::TensorInfo& weight) const {
    std::string name(weight.name);
    if (name.compare(0, 4, "blk.") == 0) name.erase(0, name.find('.', 4) + 1);
    absl::StrAppend(&name, " ", sdk::DtypeName(static_cast<uint32_t>(weight.type)), " [");
    for (uint32_t i = 0; i < weight.rank; ++i) {
      absl::StrAppend(&name, i == 0 ? "" : ", ", weight.dims[i]);
    }
    return name + "]";
  }

  const SegmentPlace& home_;
  const OpGraph& graph_;
  const SegmentLimits& limits_;
  const DispatchOptions& options_;
  const std::function<bool(const gguf::TensorInfo&)>& can_stream_;
  const std::vector<int64_t> classes_;
  std::map<TensorId, const gguf::TensorInfo*> weights_;
  std::map<std::pair<const Device*, std::string>, std::string> refusals_;
};

}  // namespace

int64_t RoutePlan::FirstTokens() const {
  for (size_t c = 0; c < classes.size(); ++c) {
    if (class_routes[c] != 0) return classes[c];
  }
  return 0;
}

bool RoutePlan::Helps(int64_t least, int64_t most) const {
  for (size_t c = 0; c < classes.size(); ++c) {
    const bool ends_before = c + 1 < classes.size() && classes[c + 1] <= least;
    if (class_routes[c] != 0 && !ends_before && classes[c] <= most) return true;
  }
  return false;
}

bool RoutePlan::HelperReads(const OpGraph& graph, TensorId tensor) const {
  const std::vector<uint32_t> readers = graph.Readers(tensor);
  return std::any_of(helper_ops.begin(), helper_ops.end(), [&](const std::vector<bool>& ops) {
    return std::any_of(readers.begin(), readers.end(), [&](uint32_t op) { return ops[op]; });
  });
}

std::optional<RouteKind> HelpKind(const trine_device_info& home, const Device& helper,
                                  const OpGraph& graph) {
  const trine_device_info& info = helper.info();
  // A helper cannot get weights and caches out of memory that the host does not see.
  if ((home.flags & TRINE_DEVICE_UNIFIED_MEMORY) == 0 || info.import_alignment == 0) {
    return std::nullopt;
  }
  if ((info.flags & TRINE_DEVICE_UNIFIED_MEMORY) == 0) return RouteKind::kStreamed;
  if (!MayImport(home, false) || !MayImport(info, false)) return std::nullopt;
  return RunsAll(helper, graph) ? RouteKind::kTwin : RouteKind::kProducts;
}

double PredictHelped(const KnownCosts& home, const KnownCosts& helper, RouteKind kind,
                     uint32_t tier, const std::vector<bool>& runs, const OpGraph& graph,
                     const PassShape& pass, const SizeRule& rule) {
  const int64_t tokens = pass.params[kParamTokens];
  bool known = false;
  if (kind == RouteKind::kTwin) {
    const SizedWork work = AllOfIt(home, helper, graph, pass, &known);
    return DecideKnown(rule, tier, tokens, work, known).away ? work.away_ns : work.home_ns;
  }
  const double correction = home.costs.correction.Within(static_cast<double>(tokens));
  double ns = 0;
  for (size_t op = 0; op < graph.n_ops(); ++op) {
    const double here = PredictOp(home.costs, graph, op, pass).ns * correction;
    ns += here;
    if (!IsProduct(graph, op) || !runs[op]) continue;
    const SizedWork work = OneProduct(home, helper, kind, graph, op, pass, &known);
    if (DecideKnown(rule, tier, tokens, work, known).away) ns += work.away_ns - here;
  }
  return ns;
}

std::string WhyNoHelp(RouteKind kind, const HomeWeights& home, const trine_device_info& helper) {
  if (!home.packed) return "";
  if (!home.file_mapped) return "the host has its weights packed only";
  if (kind == RouteKind::kStreamed) return "";
  if (ExpectedWeightPath(helper) != WeightPath::kFile) {
    return "what is packed for the one can't be read by the other; unpacked weights could";
  }
  // A driver may pin the pages that it reads.
  if (helper.memory_free != 0 && home.bytes > helper.memory_free) {
    return "there is no memory for the weights as the file has them, beside the packed ones";
  }
  return "";
}

std::optional<RoutePlan> PlanRoute(const SegmentPlace& home, const SegmentGraph& graph,
                                   const SegmentLimits& limits, const DispatchOptions& options,
                                   const HomeWeights& weights,
                                   const std::function<bool(const gguf::TensorInfo&)>& can_stream) {
  std::optional<Planner::Candidate> best;
  if (options.costs.count(home.device_name) == 0) return std::nullopt;
  Planner planner(home, graph, limits, options, can_stream);
  for (const NamedDevice& helper : options.helpers) {
    if (helper.device == home.device || options.costs.count(helper.name) == 0) continue;
    const auto kind = HelpKind(home.device->info(), *helper.device, graph.graph);
    if (!kind) continue;
    if (const std::string why = WhyNoHelp(*kind, weights, helper.device->info()); !why.empty()) {
      if (options.log) {
        options.log(
            absl::StrCat("dispatch: ", home.device_name, ", not with ", helper.name, ": ", why));
      }
      continue;
    }
    Planner::Candidate candidate = planner.Try(helper, *kind);
    planner.Log(candidate);
    if (candidate.plan.helper_ops.empty()) continue;
    if (!best || candidate.gain_ns > best->gain_ns) best = std::move(candidate);
  }
  if (!best) return std::nullopt;
  return std::move(best->plan);
}

bool CanFetch(const trine_device_info& home) {
  return (home.flags & TRINE_DEVICE_UNIFIED_MEMORY) == 0 && home.import_alignment != 0;
}

double PredictFetched(const DeviceCosts& home, const OpGraph& graph, const SegmentOwners& owners,
                      const PassShape& pass, double* flops, bool* known) {
  const double correction = home.correction.Within(static_cast<double>(pass.params[kParamTokens]));
  double ns = home.run_ns;
  for (size_t op = 0; op < graph.n_ops(); ++op) {
    const PredictedTime own = PredictOp(home, graph, op, pass);
    *known = *known && !own.unknown;
    if (owners.ops[op].empty() || !IsProduct(graph, op)) {
      ns += own.ns * correction;
      continue;
    }
    *flops += ProductFlops(graph, op, pass);
    const trine_op& o = graph.op(op);
    const auto bytes = [&](TensorId id) {
      return static_cast<double>(BytesAt(graph.tensor(id), pass.params));
    };
    // The product's input and result stay on the device.
    ns += PredictBorrowed(home, BorrowedWeights::kStreamed, graph, op, pass).ns - home.run_ns -
          home.in.Of(bytes(o.in[1])) - home.out.Of(bytes(o.out[0]));
  }
  return ns;
}

std::optional<RoutePlan> PlanFetch(const SegmentPlace& home, const SegmentGraph& graph,
                                   const SegmentOwners& owners, const SegmentLimits& limits,
                                   const DispatchOptions& options,
                                   const std::function<bool(const gguf::TensorInfo&)>& can_stream) {
  if (!CanFetch(home.device->info())) return std::nullopt;
  const auto known = [&](const NamedDevice& d) { return options.costs.count(d.name) != 0; };
  if (!std::all_of(owners.devices.begin(), owners.devices.end(), known)) return std::nullopt;
  std::map<TensorId, const gguf::TensorInfo*> weights;
  for (const WeightUse& use : graph.weights) weights[use.tensor] = use.info;
  for (size_t op = 0; op < owners.ops.size(); ++op) {
    if (owners.ops[op].empty()) continue;
    // Rows that devices share, and tables of which rows are picked, stay where they are.
    const bool product = IsProduct(graph.graph, op);
    const bool has_weight = weights.count(graph.graph.op(op).in[0]) != 0;
    if (owners.ops[op].size() > 1 || (has_weight && !product)) return std::nullopt;
    if (!RunsOp(*home.device, graph.graph, op)) return std::nullopt;
    if (product && !can_stream(*weights.at(graph.graph.op(op).in[0]))) return std::nullopt;
  }
  Planner planner(home, graph, limits, options, can_stream);
  Planner::Candidate candidate = planner.TryFetch(graph, owners);
  planner.Log(candidate);
  if (candidate.plan.helper_ops.empty()) return std::nullopt;
  return std::move(candidate.plan);
}

}  // namespace trine
