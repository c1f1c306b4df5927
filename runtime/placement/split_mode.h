// Decides by --split-mode and --override-tensor where a model goes: whole layers or rows of every
// matrix on several devices, or all on one device, and single tensors elsewhere
// (docs/split-modes.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/layer_ranges.h"
#include "runtime/placement/placement_request.h"

namespace trine {

// Returns the places of all parts of the model. Calls `layers` for the places of whole layers, and
// of parts of layers that the planner chooses, of SplitMode::kLayer.
absl::StatusOr<ModelPlaces> ChoosePlaces(
    const PlacementRequest& request, const LogSink& log, const gguf::File& file,
    const ModelConfig& config, const DeviceSet& devices,
    const std::function<absl::StatusOr<ModelPlaces>()>& layers);

// Returns the device of each weight that --override-tensor, --cpu-moe or --n-cpu-moe moves. The
// first override that finds a weight has it.
absl::StatusOr<std::map<std::string, std::string>> ResolveOverrides(const PlacementRequest& request,
                                                                    const LogSink& log,
                                                                    const gguf::File& file,
                                                                    const DeviceSet& devices);

// Returns how many slots --hot-experts gives each layer: those whose experts `tensors` ([weight]:
// its device) has all on the CPU. Returns INVALID_ARGUMENT if that is not fewer than there are
// experts.
absl::StatusOr<std::map<int64_t, int64_t>> SlotsFor(
    const PlacementRequest& request, const gguf::File& file, const ModelConfig& config,
    const std::map<std::string, std::string>& tensors);

// Returns the places without a lost device. Its layers go to `instead`. Its rows go to the other
// devices that share rows. Tensors that were placed on it by name go back to their layers' device.
ModelPlaces WithoutDevice(const ModelPlaces& places, const std::string& device,
                          const std::string& instead);

}  // namespace trine
