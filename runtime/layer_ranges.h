// Which layers go on which device: what the user asked for, and what becomes of it when a device
// fails.
#ifndef TRINE_RUNTIME_LAYER_RANGES_H_
#define TRINE_RUNTIME_LAYER_RANGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/split_spec.h"
#include "runtime/device_set.h"
#include "runtime/engine_options.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"

namespace trine {

// By --tensor-split or --gpu-layers; else everything on the CPU.
absl::StatusOr<std::vector<LayerRange>> ChooseRanges(const EngineOptions& options,
                                                     const gguf::File& file,
                                                     const ModelConfig& config,
                                                     const DeviceSet& devices);

// Gives the embedding to the first of them and the head to the last, unless another has them.
void SetEnds(std::vector<LayerRange>* ranges);

// The ranges with another device in the place of one; neighbours on the same device are joined.
std::vector<LayerRange> WithoutDevice(const std::vector<LayerRange>& ranges,
                                      const std::string& device, const std::string& instead);

}  // namespace trine

#endif  // TRINE_RUNTIME_LAYER_RANGES_H_
