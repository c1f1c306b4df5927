// Reads the numbers of a model from its file and builds the graph of its layers. Uses all
// architectures; they do not use it.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {

// Returns UNIMPLEMENTED for an unknown architecture or variant, and INVALID_ARGUMENT for numbers
// that make no sense. Both name the key and the value.
absl::StatusOr<ModelConfig> ReadModelConfig(const gguf::File& file);

struct SegmentGraphOptions {
  bool finish = true;    // calls OpGraph::Finish, so temporaries share memory; false: can be cut
  bool in_place = true;  // ops overwrite their input if they can; false: never
  const ExpertDivision* division = nullptr;  // null: no layer is divided
};

// Builds the graph of `span`. Returns INVALID_ARGUMENT, naming the tensor, if a tensor is missing
// or its shape does not match the model's numbers.
absl::StatusOr<SegmentGraph> BuildSegmentGraph(const gguf::File& file, const ModelConfig& config,
                                               const SegmentLimits& limits, const LayerSpan& span,
                                               const SegmentGraphOptions& options = {});
// Builds the graph of the whole model.
absl::StatusOr<SegmentGraph> BuildSegmentGraph(const gguf::File& file, const ModelConfig& config,
                                               const SegmentLimits& limits);

}  // namespace trine
