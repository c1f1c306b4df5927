// The user's wishes about where layers, rows and tensors go. The command line and the C API parse
// their texts into a PlacementRequest once; all other code passes it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/size_rule.h"
#include "dispatch/devices/split_spec.h"
#include "dispatch/planner/problem.h"

namespace trine {

// The way in which devices share a model (docs/split-modes.md): kLayer: each has whole layers;
// kRow: each has rows of every matrix; kNone: one device has the whole model.
enum class SplitMode { kLayer, kRow, kNone };

// Moves the matrices whose names match the expression to the device. Both are as the user wrote
// them.
struct TensorOverride {
  std::string expression;
  std::string device;
};

// Parses "REGEX=DEVICE,REGEX=DEVICE,...". A comma before the next "=" belongs to the expression.
// Returns INVALID_ARGUMENT also for an expression that does not compile.
absl::StatusOr<std::vector<TensorOverride>> ParseOverrides(const std::string& text);

struct PlacementRequest {
  // The user's placement. Without a split and without gpu_layers the planner decides.
  std::vector<SplitShare> split;  // --tensor-split; empty: not given
  int64_t gpu_layers = -1;        // the last n layers go to the first GPU; -1: not given
  SplitMode mode = SplitMode::kLayer;
  std::vector<TensorOverride> overrides;  // the first override that matches a matrix moves it
  // The experts of the first n layers, or of all of them, are on the CPU.
  static constexpr int64_t kAllLayers = -1;
  int64_t cpu_experts = 0;
  // The number of experts of each layer that are on the CPU and on the layer's own device as well:
  // the experts that tokens choose most. 0: none. nullopt: none, or as many as counts of experts
  // make fastest.
  std::optional<int64_t> hot_experts;
  // The limits and aims of the planner.
  std::vector<std::string> devices;  // by any name; empty: every device that is usable
  Strategy strategy = Strategy::kAuto;
  Optimize optimize = Optimize::kLatency;
  std::vector<SplitShare> memory_limits;  // the most bytes that devices may be given
  DispatchMode dispatch;                  // routes of large passes: docs/dispatch.md
  bool allow_degraded = false;            // continue without devices that are named but absent
  // The file of measured costs. "": Calibration::DefaultPath if the environment may be used, else
  // no file.
  std::string calibration;

  // Returns whether passes that only write stay on the devices of their layers. With a placement of
  // the user's they do, unless the user says otherwise.
  bool helps_prompts_only() const { return dispatch.prompts_only.value_or(!planned()); }
  // Returns whether the user says which experts are on the CPU.
  bool places_experts() const { return cpu_experts != 0 || hot_experts.value_or(0) > 0; }
  // Returns whether the planner decides where layers go.
  bool planned() const { return mode == SplitMode::kLayer && split.empty() && gpu_layers < 0; }
};

}  // namespace trine
