// A model for an execution graph: with taps, placed as an engine would place it, but run by nobody
// else and kept by nobody. A device that fails is an error here, and not replaced: whoever looks at
// what devices do wants to know.
#ifndef TRINE_RUNTIME_GRAPH_GRAPH_MODEL_H_
#define TRINE_RUNTIME_GRAPH_GRAPH_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/engine_options.h"
#include "runtime/graph/execution_graph.h"
#include "runtime/model_setup.h"

namespace trine {

struct GraphModel {
  ModelSetup setup;  // outlives the model
  std::shared_ptr<Model> model;

  ~GraphModel() { model.reset(); }
};

// With options.taps, and one sequence. A planner that is free to choose stays with whole layers.
absl::StatusOr<std::unique_ptr<GraphModel>> LoadGraphModel(const EngineOptions& options);

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_GRAPH_MODEL_H_
