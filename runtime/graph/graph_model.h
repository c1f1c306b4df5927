// Loads a model for an execution graph: with taps, and placed as an engine would place it, but run
// by the graph alone. If a device fails, that is an error and the device is not replaced, because
// the graph is there to show what devices do.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/model_setup.h"
#include "runtime/graph/execution_graph.h"

namespace trine {

struct GraphModel {
  ModelSetup setup;  // must outlive the model
  std::shared_ptr<Model> model;

  ~GraphModel() { model.reset(); }
};

// Loads the model with options.taps, for one sequence. A planner that is free to choose places
// whole layers.
absl::StatusOr<std::unique_ptr<GraphModel>> LoadGraphModel(const EngineOptions& options);

}  // namespace trine
