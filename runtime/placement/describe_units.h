// Counts bytes and times of a model's units (layers, embedding, head) on one device for the
// planner. The devices are asked for their opinion on the calling thread, which hangs if one of
// them does.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "dispatch/cost/cost_model.h"
#include "dispatch/planner/problem.h"
#include "plugins/handles.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/split/tensor_places.h"
#include "runtime/placement/known_costs.h"
#include "runtime/placement/problem.h"

namespace trine {

// The two passes whose times are predicted.
struct NominalPasses {
  PassShape decode, prefill;
  double prefill_tokens = 1;
};

NominalPasses PassesOf(const SegmentLimits& limits, const NominalRequest& request);

// What the descriptions of all devices have in common. Shared with the threads that describe them,
// because such a thread may be abandoned.
struct DescribeInputs {
  std::shared_ptr<const gguf::File> file;
  ModelConfig config;
  SegmentLimits limits;
  ProblemOptions options;
  NominalPasses passes;
};

// A device that may help, and its costs.
struct Helper {
  std::string name;  // its tier name
  KnownCosts costs;
  std::shared_ptr<Device> device;
};

// Rounds a time, and bounds it so that sums of times can't overflow.
int64_t Nanoseconds(double ns);

// Returns the span of layers that a unit of the planner stands for.
LayerSpan UnitSpan(int unit, int layers);

// Returns the bytes of a weight in memory. Weights in the file's own pages count, too: the system
// can drop them, but then each token reads them from the disk.
uint64_t WeightBytes(const WeightUse& use);

// Returns the error of a description that was given up: its caller no longer waits for the result.
absl::Status Abandoned();

// Returns whether the device has failed, and not only refused something that it can't do.
bool IsGone(const absl::Status& status);

// Fills in bytes and times of all units, and the helper whose help they count on ("": none). Ends
// early with an error when `wanted` becomes false.
absl::Status DescribeDevice(const DescribeInputs& inputs, const Device& device,
                            const KnownCosts& known, const std::vector<Helper>& helpers,
                            const std::atomic<bool>& wanted, PlanDevice* out, std::string* helper);

// What parts elsewhere take on the device of their layers, beyond their units' bytes.
struct PartsNeeds {
  uint64_t bytes = 0;    // for the values that move between devices
  bool fetches = false;  // prompts are predicted with fetched weights (docs/dispatch.md)
};

// Replaces bytes and times of the units of `home` whose weights `places` puts elsewhere. Slots of
// experts that it names count among the bytes. `in_slots`: by layer, the part of the choices that
// are expected to be of experts in slots. `costs`: of each device that is involved, by tier name.
// Adds to `shares`, by tier name, what other devices have and do.
absl::Status DescribeParts(const DescribeInputs& inputs, const NamedDevice& home,
                           const TensorPlaces& places, const std::map<int64_t, double>& in_slots,
                           const std::map<std::string, KnownCosts>& costs,
                           const std::atomic<bool>& wanted, PlanDevice* out,
                           std::map<std::string, PlanShare>* shares, PartsNeeds* needs);

}  // namespace trine
