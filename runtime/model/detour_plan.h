// Other ways through a stage, for passes of some sizes: products whose weights are brought to a
// device that has memory of its own, or all of a stage on another device that shares the memory of
// the stage's own. docs/dispatch.md.
#ifndef TRINE_RUNTIME_MODEL_DETOUR_PLAN_H_
#define TRINE_RUNTIME_MODEL_DETOUR_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/cost_model.h"
#include "dispatch/device_costs.h"
#include "dispatch/size_rule.h"
#include "runtime/model/memory_check.h"
#include "runtime/model/segment_graph.h"
#include "runtime/model/tensor_places.h"

namespace trine {

struct DispatchOptions {
  SizeRule rule;
  std::map<std::string, KnownCosts> costs;  // by the devices' names
  std::vector<NamedDevice> helpers;         // that may run what is others'; empty: nothing moves
  std::map<std::string, uint64_t> limits;   // bytes that devices may be given; none: as there are
  std::function<void(const std::string&)> log;  // hears of each decision; null: nobody does
};

// A stage's weights, as they are before anybody helps it.
struct HomeWeights {
  bool packed = false;  // some of them
  bool file_mapped = true;
  uint64_t bytes = 0;  // of the packed ones, in the file; 0: it is not known
};

enum class DetourKind {
  kStreamed,  // products, with weights from the host's memory
  kTwin,      // everything, over the same weights and caches
};

struct DetourPlan {
  NamedDevice helper;
  DetourKind kind = DetourKind::kStreamed;
  std::vector<std::vector<bool>> routes;  // of each one, which ops the helper runs
  std::vector<int64_t> classes;           // of tokens, by where they begin
  std::vector<size_t> class_routes;       // 0: as always, else the number of a route, from 1 on

  // The first number of tokens that some route begins with.
  int64_t FirstTokens() const;
};

// Whether a device may help another that has some layers, and how.
std::optional<DetourKind> HelpKind(const trine_device_info& home, const trine_device_info& helper);

// Why a device may not help; "": it may.
std::string WhyNoHelp(DetourKind kind, const HomeWeights& home, const trine_device_info& helper);

// How long the ops of a graph take together where the helper does what it is better at.
double PredictHelped(const KnownCosts& home, const KnownCosts& helper, DetourKind kind,
                     const OpGraph& graph, const PassShape& pass, const SizeRule& rule);

// The helper with which most is gained; nothing where none gains anything. `graph` is not finished.
// `can_stream`: whether the host's memory has a weight as the file has it.
std::optional<DetourPlan> PlanDetour(
    const SegmentPlace& home, const SegmentGraph& graph, const SegmentLimits& limits,
    const DispatchOptions& options, const HomeWeights& weights,
    const std::function<bool(const gguf::TensorInfo&)>& can_stream);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_DETOUR_PLAN_H_
