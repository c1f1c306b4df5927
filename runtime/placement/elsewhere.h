// Finds weights that are on other devices than their layers: rows of matrices, and tensors placed
// by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/split/tensor_places.h"
#include "runtime/model/weights/memory_check.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/layer_ranges.h"

namespace trine {

// The places of a model's parts, with opened devices.
struct OpenedPlaces {
  std::vector<SegmentPlace> segments;  // one for each of ModelPlaces::ranges
  TensorPlaces tensors;
};

// Opens all devices of the places. The status of a device that can't be opened names it.
absl::StatusOr<OpenedPlaces> OpenPlaces(const ModelPlaces& places, DeviceSet* devices);

// The matrices of a range of layers that are on a device other than the range's own. Bytes are
// counted as in the file.
struct MovedWeights {
  size_t range = 0;    // index in ModelPlaces::ranges
  std::string device;  // its tier name
  int whole = 0;       // the number of whole matrices there
  int parts = 0;       // the number of matrices with some rows there
  uint64_t bytes = 0;
};

// Returns the moved weights of a model in these places. Opens the devices.
absl::StatusOr<std::vector<MovedWeights>> FindMovedWeights(const gguf::File& file,
                                                           const ModelConfig& config,
                                                           const SegmentLimits& limits,
                                                           const ModelPlaces& places,
                                                           DeviceSet* devices);

}  // namespace trine
