// Parses --tensor-split: how much each tier or device gets, in the order of the model.
//
//   cpu:4,igpu:12,dgpu:16    layers          cpu:4L    the same
//   cpu:25%,dgpu:75%         of the layers   dgpu:12G  bytes of weights (K, M, G, T)
//   3,1                      proportions over the GPUs, as in other engines
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/devices/layer_span.h"

namespace trine {

struct SplitShare {
  enum class Unit { kLayers, kBytes, kPercent, kProportion };
  std::string device;  // a tier or device name, as written; "" for a bare proportion
  Unit unit = Unit::kLayers;
  double amount = 0;
};

// Parses the text, and checks what does not depend on the model. Returns INVALID_ARGUMENT, naming
// the part that is wrong or saying why the parts don't go together.
absl::StatusOr<std::vector<SplitShare>> ParseSplit(const std::string& text);

// Parses "dgpu:2G,igpu:512M": pairs of a device and bytes.
absl::StatusOr<std::vector<SplitShare>> ParseDeviceMemory(const std::string& text);

// Turns the result of ParseSplit into layers: one range for each share, empty if the share gets no
// layer. `layer_bytes` has one entry per layer of the model. `gpus` names the devices that bare
// proportions refer to. Returns an error with the right sum if the shares don't add up.
absl::StatusOr<std::vector<LayerRange>> ResolveSplit(const std::vector<SplitShare>& shares,
                                                     const std::vector<uint64_t>& layer_bytes,
                                                     const std::vector<std::string>& gpus);

}  // namespace trine
