// Finds results of all lanes of a group: the best score (the highest; among equals the one with the
// lowest id), and float sums of 32 classes, one for each lane (docs/numerics.md, "Sums").
#pragma once

#include <cstdint>

#include "kernels/hip/gpu/device.h"

namespace trine::hip {

// Returns an integer; these have the order of the canonical floats. No float has key 0.
TRINE_DEVICE uint32_t KeyOf(float v) {
  const uint32_t bits = Bits(v);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u);
}
TRINE_DEVICE float ValueOf(uint32_t key) {
  return FromBits(key ^ ((key >> 31) != 0 ? 0x80000000u : 0xffffffffu));
}

struct Best {
  uint32_t key;  // 0: none
  uint32_t id;
};

// Returns the best `mine` of the group's lanes, to all of them.
TRINE_DEVICE Best BestOfLanes(const Best& mine) {
  const uint32_t key = LaneMax(mine.key);
  return {key, LaneMin(mine.key == key ? mine.id : 0xffffffffu)};
}

// Joins the classes by halves. All lanes of the group get the total.
TRINE_DEVICE float JoinClasses(float class_sum) {
  for (int half = kLanes / 2; half > 0; half /= 2) class_sum = class_sum + LaneXor(class_sum, half);
  return class_sum;
}

}  // namespace trine::hip
