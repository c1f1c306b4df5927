// Plans the helped routes of a stage: ways to run it with the help of another device, for passes of
// those sizes for which that is faster (docs/dispatch.md). The stage's own device is called home.
// There are four kinds of help:
//   streamed  A helper with its own memory runs some products. It fetches their weights from the
//             host's memory each time.
//   twin      A helper that shares home's memory runs the whole stage.
//   products  A helper that shares home's memory, and has not all of the stage's ops, runs some
//             products. It reads their weights where they are.
//   fetched   Of a stage whose weights are partly on other devices, home with its own memory runs
//             everything. It fetches these weights from the host's memory each time.
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

// Who may help, and what is known about the devices.
struct DispatchOptions {
  SizeRule rule;
  std::map<std::string, KnownCosts> costs;      // by device name
  std::vector<NamedDevice> helpers;             // devices that may help; empty: dispatch is off
  std::map<std::string, uint64_t> limits;       // [device name]: the most bytes; no entry: no limit
  std::function<void(const std::string&)> log;  // called with each decision; may be null
};

// The weights of a stage on its home device.
struct HomeWeights {
  bool packed = false;      // some weights are packed
  bool file_mapped = true;  // the model file is mapped, not read into memory
  uint64_t bytes = 0;       // the size that the packed weights have in the file; 0: unknown
};

enum class RouteKind {
  kStreamed,  // the helper runs products with weights from the host's memory
  kTwin,      // the helper runs all ops over the same weights and caches
  kProducts,  // the helper runs products over the same weights
  kFetched,   // home runs all ops, with some weights from the host's memory
};

// The helped routes of a stage, and the route for each class of passes: those with a number of
// tokens in a range.
struct RoutePlan {
  NamedDevice helper;
  RouteKind kind = RouteKind::kStreamed;
  std::vector<std::vector<bool>> helper_ops;  // [helped route][op]: whether the helper runs the op
  std::vector<int64_t> classes;               // [class of passes]: its fewest tokens (size_rule.h)
  std::vector<size_t> class_routes;           // [class]: 0 for home, n for helped route n - 1
  int64_t at_least = 1;                       // passes of fewer tokens stay at home
  std::set<const gguf::TensorInfo*> fetched;  // kFetched: the weights that home fetches

  // Returns the number of tokens of the smallest pass that takes a helped route; 0 if none does.
  int64_t FirstTokens() const;
  // Returns whether some pass of `least` to `most` tokens takes a helped route.
  bool Helps(int64_t least, int64_t most) const;
  // Returns whether an op that reads the tensor runs on the helper in any route.
  bool HelperReads(const OpGraph& graph, TensorId tensor) const;
};

// Returns how `helper` can help `home` with the graph, by the kinds of memory that they have and
// the ops that the helper has; nullopt if it can't.
std::optional<RouteKind> HelpKind(const trine_device_info& home, const Device& helper,
                                  const OpGraph& graph);

// Returns why `helper` can't use the weights as `home` has them; "" if it can.
std::string WhyNoHelp(RouteKind kind, const HomeWeights& home, const trine_device_info& helper);

// Predicts the time of one pass through `graph` in ns, if the helper runs the ops that `rule` gives
// to the helper. `tier`: the helper's. `runs`: by op, whether the helper has it.
double PredictHelped(const KnownCosts& home, const KnownCosts& helper, RouteKind kind,
                     uint32_t tier, const std::vector<bool>& runs, const OpGraph& graph,
                     const PassShape& pass, const SizeRule& rule);

// Returns a plan with the helper that saves the most time, or nullopt if no helper saves any.
// REQUIRES: graph.Finish() has not been called. `can_stream` returns whether a weight lies in the
// host's memory in the layout of the file, so that a helper can fetch it.
std::optional<RoutePlan> PlanRoute(const SegmentPlace& home, const SegmentGraph& graph,
                                   const SegmentLimits& limits, const DispatchOptions& options,
                                   const HomeWeights& weights,
                                   const std::function<bool(const gguf::TensorInfo&)>& can_stream);

// The memory that a plugin is expected to stream weights through (docs/plugin-abi.md, "Memory").
inline constexpr uint64_t kStreamBytes = uint64_t{128} << 20;

// Returns whether a device can fetch weights from the host's memory: it has its own memory, and
// imports the host's.
bool CanFetch(const trine_device_info& home);

// Predicts the time of one pass if home, with these costs, runs all ops and fetches the weights of
// products that `owners` has elsewhere. Adds the work of these products to `flops`; sets `known` to
// false if the cost of an op is missing.
double PredictFetched(const DeviceCosts& home, const OpGraph& graph, const SegmentOwners& owners,
                      const PassShape& pass, double* flops, bool* known);

// Returns a plan by which home fetches the weights that are elsewhere, or nullopt if that saves
// nothing. `owners`: the devices of the stage's ops. Otherwise as PlanRoute.
std::optional<RoutePlan> PlanFetch(const SegmentPlace& home, const SegmentGraph& graph,
                                   const SegmentOwners& owners, const SegmentLimits& limits,
                                   const DispatchOptions& options,
                                   const std::function<bool(const gguf::TensorInfo&)>& can_stream);

}  // namespace trine
