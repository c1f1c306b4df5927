// Plans the helped routes of a stage (docs/dispatch.md). Home is the device on which the stage's
// layers are placed. A helped route is another way to run the stage, for passes of a size for which
// it is faster. There are four kinds. In three of them another device, the helper, runs ops:
//   streamed  The helper has its own memory and runs some products. It fetches their weights from
//             the host's memory in each pass.
//   twin      The helper shares home's memory and runs the whole stage.
//   products  The helper shares home's memory, but lacks some of the stage's ops. It runs some
//             products, and reads their weights where they are.
// The fourth has no helper. It is for a stage of which some weights are on other devices:
//   fetched   Home has its own memory and runs the whole stage. It fetches the weights that are
//             elsewhere from the host's memory in each pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dispatch/cost/cost_model.h"
#include "dispatch/cost/device_costs.h"
#include "dispatch/cost/size_rule.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/split/tensor_places.h"
#include "runtime/model/weights/memory_check.h"

namespace trine {

// Says which devices may help, and what is known about the devices.
struct DispatchOptions {
  SizeRule rule;
  // [device name]. A device without an entry neither helps nor is helped.
  std::map<std::string, KnownCosts> costs;
  std::vector<NamedDevice> helpers;  // devices that may help; empty: no stage has helped routes
  // [device name]: the most bytes that the model may take on a device, its helped routes included.
  // No entry: no limit. Not checked here, but when the routes are loaded.
  std::map<std::string, uint64_t> limits;
  std::function<void(const std::string&)> log;  // called with a line for each decision; may be null
};

// Says how home has the weights of a stage.
struct HomeWeights {
  bool packed = false;      // some weights are packed for home
  bool file_mapped = true;  // the model file is mapped, not read into memory
  uint64_t bytes = 0;       // the size of these packed weights in the file; 0: unknown
};

// The kinds of help that are listed above.
enum class RouteKind {
  kStreamed,  // the helper runs products with weights from the host's memory
  kTwin,      // the helper runs all ops over the same weights and caches
  kProducts,  // the helper runs products over the same weights
  kFetched,   // home runs all ops, with some weights from the host's memory
};

// The helped routes of a stage, all of one kind, and the route of each class of passes. A class is
// a range of numbers of tokens. (Near its ends RouteSwitch may keep the route of the pass before.)
struct RoutePlan {
  NamedDevice helper;  // kFetched: home itself
  RouteKind kind = RouteKind::kStreamed;
  std::vector<std::vector<bool>> helper_ops;  // [helped route][op]: whether the helper runs the op
  std::vector<int64_t> classes;               // [class]: its fewest tokens (TokenClasses)
  std::vector<size_t> class_routes;           // [class]: 0 for home, n for helped route n - 1
  int64_t at_least = 1;                       // passes of fewer tokens stay at home
  // kFetched: the weights that home fetches. The model file owns them.
  std::set<const gguf::TensorInfo*> fetched;

  // Returns the fewest tokens with which a pass is in a class that takes a helped route; 0 if no
  // class does.
  int64_t FirstTokens() const;
  // Returns whether at least one number of tokens from `least` to `most` is in such a class.
  bool Helps(int64_t least, int64_t most) const;
  // Returns whether the helper reads a tensor of the stage's graph in at least one helped route.
  bool HelperReads(const OpGraph& graph, TensorId tensor) const;
};

// Returns how `helper` can help `home` with the graph: by the kinds of memory that both have, and
// by the ops that the helper has. Never returns kFetched, which PlanFetch plans. Returns nullopt if
// it can't help: if home has its own memory, or if the devices can't import what they would share.
std::optional<RouteKind> HelpKind(const trine_device_info& home, const Device& helper,
                                  const OpGraph& graph);

// Returns why `helper` can't get the weights, or "" if it can. If home has packed weights, the
// helper needs them as the file has them: from the mapped file, which it reads in place unless
// `kind` is kStreamed. REQUIRES: `kind` is what HelpKind returned.
std::string WhyNoHelp(RouteKind kind, const HomeWeights& home, const trine_device_info& helper);

// Predicts the time of one pass through `graph`, in ns, if the helper runs the ops for which `rule`
// decides so. Does not include home's run_ns. An op stays at home if its cost on the helper is not
// known; it counts 0 if its cost at home is not known. `tier`: the helper's. `runs`: by op, whether
// the helper can run it; not read for kTwin. REQUIRES: `kind` is not kFetched.
double PredictHelped(const KnownCosts& home, const KnownCosts& helper, RouteKind kind,
                     uint32_t tier, const std::vector<bool>& runs, const OpGraph& graph,
                     const PassShape& pass, const SizeRule& rule);

// Returns a plan with the helper that saves the most time, summed over all classes. Returns nullopt
// if options.rule gives no helper any work, or if the costs of home are not known. A rule may give
// work whatever the times are, as it does if rule.from_tokens > 0: then a plan comes back even if
// it saves nothing. `can_stream` returns whether a weight is in the host's memory as the file has
// it, so that a helper can read it there. REQUIRES: graph.graph.Finish() has not been called.
std::optional<RoutePlan> PlanRoute(const SegmentPlace& home, const SegmentGraph& graph,
                                   const SegmentLimits& limits, const DispatchOptions& options,
                                   const HomeWeights& weights,
                                   const std::function<bool(const gguf::TensorInfo&)>& can_stream);

// The bytes of its own memory that a device is assumed to stream weights through. The ABI does not
// tell the number (docs/plugin-abi.md, "Memory").
inline constexpr uint64_t kStreamBytes = uint64_t{128} << 20;

// Returns whether home can fetch weights from the host's memory in each pass: it has its own
// memory, and imports the host's.
bool CanFetch(const trine_device_info& home);

// Predicts the time of one pass, in ns, if home runs all ops and fetches the weights of the
// products that `owners` has on other devices. `home`: the costs of home; its run_ns is included.
// Adds the operations of these products to *flops. Sets *known to false if the cost of an op is
// missing, and leaves it else. REQUIRES: *flops and *known are initialised.
double PredictFetched(const DeviceCosts& home, const OpGraph& graph, const SegmentOwners& owners,
                      const PassShape& pass, double* flops, bool* known);

// Returns a plan by which home fetches the weights of products that are on other devices. `owners`:
// the devices of the stage's ops, home first. For the rest see PlanRoute. Returns nullopt if
//   - options.rule never prefers this, or the costs of one of the devices are not known;
//   - home can't fetch (CanFetch), or lacks an op that is elsewhere;
//   - `can_stream` returns false for one of these weights;
//   - devices share the rows of a weight, or a weight elsewhere is not that of a product.
std::optional<RoutePlan> PlanFetch(const SegmentPlace& home, const SegmentGraph& graph,
                                   const SegmentOwners& owners, const SegmentLimits& limits,
                                   const DispatchOptions& options,
                                   const std::function<bool(const gguf::TensorInfo&)>& can_stream);

}  // namespace trine
