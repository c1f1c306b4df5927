// What --tensor-split says, taken apart: which tier or device gets how much, in model order.
//
//   cpu:4,igpu:12,dgpu:16    layers          cpu:4L    the same
//   cpu:25%,dgpu:75%         of the layers   dgpu:12G  bytes of weights (K, M, G, T)
//   3,1                      proportions over the GPUs, as other engines have it
#ifndef TRINE_DISPATCH_SPLIT_SPEC_H_
#define TRINE_DISPATCH_SPLIT_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

struct SplitShare {
  enum class Unit { kLayers, kBytes, kPercent, kProportion };
  std::string device;  // a tier or device name, as written; "" for a bare proportion
  Unit unit = Unit::kLayers;
  double amount = 0;
};

// INVALID_ARGUMENT, naming the part that is wrong, or what is with all of them, whatever the model.
absl::StatusOr<std::vector<SplitShare>> ParseSplit(const std::string& text);

// "dgpu:2G,igpu:512M": a device and bytes, each.
absl::StatusOr<std::vector<SplitShare>> ParseDeviceMemory(const std::string& text);

// Layers [begin, end) on one device, with the embedding before them or the output head behind.
struct LayerRange {
  std::string device;
  int begin = 0;
  int end = 0;
  bool embedding = false;
  bool head = false;

  bool empty() const { return begin == end && !embedding && !head; }
};

// Turns what ParseSplit gave into layers: a range for each share, empty where it gets none.
// `layer_bytes` has one entry per layer of the model; `gpus` names the devices a bare list of
// proportions is about. An error states the right sum.
absl::StatusOr<std::vector<LayerRange>> ResolveSplit(const std::vector<SplitShare>& shares,
                                                     const std::vector<uint64_t>& layer_bytes,
                                                     const std::vector<std::string>& gpus);

}  // namespace trine

#endif  // TRINE_DISPATCH_SPLIT_SPEC_H_
