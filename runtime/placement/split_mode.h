// Decides by --split-mode and --override-tensor where a model goes: whole layers or rows of every
// matrix on several devices, or all on one device, and single tensors elsewhere
// (docs/split-modes.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/layer_ranges.h"
#include "runtime/placement/placement_request.h"

namespace trine {

// Returns the places of all parts of the model. Calls `layers` for the ranges of SplitMode::kLayer.
absl::StatusOr<ModelPlaces> ChoosePlaces(
    const PlacementRequest& request, const LogSink& log, const gguf::File& file,
    const ModelConfig& config, const DeviceSet& devices,
    const std::function<absl::StatusOr<std::vector<LayerRange>>()>& layers);

// Returns the places without a lost device. Its layers go to `instead`. Its rows go to the other
// devices that share rows. Tensors that were placed on it by name go back to their layers' device.
ModelPlaces WithoutDevice(const ModelPlaces& places, const std::string& device,
                          const std::string& instead);

}  // namespace trine
