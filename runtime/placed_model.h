// Where a model is, in words and numbers: what can be shown without holding any of it.
#ifndef TRINE_RUNTIME_PLACED_MODEL_H_
#define TRINE_RUNTIME_PLACED_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/model.h"

namespace trine {

struct PlacedSegment {
  std::string device;  // of its tier
  std::string chip;    // as its maker calls it
  LayerSpan span;
  // Of what its device has in all, by layers.
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t scratch_bytes = 0;
};

struct PlacedModel {
  std::vector<PlacedSegment> segments;  // none while it is placed anew
};

PlacedModel Describe(const Model& model);

}  // namespace trine

#endif  // TRINE_RUNTIME_PLACED_MODEL_H_
