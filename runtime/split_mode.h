// Where a model goes, by --split-mode and --override-tensor: whole layers, rows of every matrix,
// one device, and single tensors elsewhere (docs/split-modes.md).
#ifndef TRINE_RUNTIME_SPLIT_MODE_H_
#define TRINE_RUNTIME_SPLIT_MODE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device_set.h"
#include "runtime/engine_options.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"
#include "runtime/model_places.h"

namespace trine {

// `layers`: where they go when the mode is that.
absl::StatusOr<ModelPlaces> ChoosePlaces(
    const EngineOptions& options, const gguf::File& file, const ModelConfig& config,
    const DeviceSet& devices,
    const std::function<absl::StatusOr<std::vector<LayerRange>>()>& layers);

// The places without a device that is lost. Its layers go to `instead`, its rows to those that
// share them, tensors placed there by name back to their layers.
ModelPlaces WithoutDevice(const ModelPlaces& places, const std::string& device,
                          const std::string& instead);

// An expression over tensor names, and the device that what it finds goes to, as written.
struct TensorOverride {
  std::string expression;
  std::string device;
};

// "REGEX=DEVICE,REGEX=DEVICE,...". A comma before the next "=" is the expression's own.
// INVALID_ARGUMENT also where an expression is none.
absl::StatusOr<std::vector<TensorOverride>> ParseOverrides(const std::string& text);

}  // namespace trine

#endif  // TRINE_RUNTIME_SPLIT_MODE_H_
