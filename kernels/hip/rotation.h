// Values that are rotated by a table and stored into a cache, one or two at a time.
#ifndef TRINE_KERNELS_HIP_ROTATION_H_
#define TRINE_KERNELS_HIP_ROTATION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/quant/activation.h"
#include "kernels/quant/block_types.h"

namespace trine::hip {

// How a row of values is rotated: the first 2 * pairs of them.
struct Rotation {
  const float* cosines;  // of a token; its sines are behind them
  uint32_t pairs;
  bool halves;  // the second of a pair lies `pairs` behind the first, not next to it
};

// Item `item` of a row: a pair, or a value that passes. `put` is called with a value's number and
// what becomes of it, once all that it depends on has been read. A row of n values has n - pairs.
template <class Put>
TRINE_DEVICE void RotateItem(const Rotation& rotation, const float* from, uint32_t item,
                             const Put& put) {
  const uint32_t pairs = rotation.pairs;
  if (item >= pairs) {
    put(item + pairs, from[item + pairs]);
    return;
  }
  const float c = rotation.cosines[item], s = rotation.cosines[pairs + item];
  const uint32_t i0 = rotation.halves ? item : 2 * item;
  const uint32_t i1 = rotation.halves ? item + pairs : i0 + 1;
  const float x0 = from[i0], x1 = from[i1];
  put(i0, Canon(x0 * c - x1 * s));
  put(i1, Canon(x0 * s + x1 * c));
}

// f16 has its own floor of 2^-24; the other types are given one.
TRINE_DEVICE float AboveFloor(float x) { return Abs(x) < quant::kKvTiny ? 0.0f : x; }

// Value i of a cache's row of f32, f16 or bf16.
TRINE_DEVICE void StoreValue(quant::Type type, std::byte* row, uint32_t i, float x) {
  if (type == quant::Type::kF16) {
    reinterpret_cast<uint16_t*>(row)[i] = quant::F32ToF16Saturated(x);
  } else if (type == quant::Type::kBF16) {
    reinterpret_cast<uint16_t*>(row)[i] = quant::F32ToBf16(AboveFloor(x));
  } else {
    reinterpret_cast<float*>(row)[i] = AboveFloor(x);
  }
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ROTATION_H_
