// The order in which the best of scores are taken: highest first, equal ones by lowest id.
#ifndef TRINE_KERNELS_HIP_RANKING_H_
#define TRINE_KERNELS_HIP_RANKING_H_

#include <cstdint>

#include "kernels/hip/gpu/device.h"

namespace trine::hip {

// Of floats that are canonical: their order as integers. No float has key 0.
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

// The best of what each lane of a group brings; its lanes all get it.
TRINE_DEVICE Best BestOfLanes(const Best& mine) {
  const uint32_t key = LaneMax(mine.key);
  return {key, LaneMin(mine.key == key ? mine.id : 0xffffffffu)};
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_RANKING_H_
