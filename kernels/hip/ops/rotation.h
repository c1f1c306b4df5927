// Rotates values by a table, and stores values into a cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/quant/activation.h"
#include "kernels/quant/block_types.h"

namespace trine::hip {

// The rotation of the first 2 * pairs values of a row.
struct Rotation {
  const float* cosines;  // of a token, followed by its sines
  uint32_t pairs;
  bool halves;  // true: the second of a pair lies `pairs` after the first; false: next to it
};

// Does one item of a row: rotates a pair, or copies a value that is not rotated. Calls `put` with
// the index and the result of each value, after it has read the item. A row of n values has n -
// pairs items.
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

// Returns x, or 0 if x is below the floor of a cache's values. f16 has its own floor, 2^-24; this
// is for the other types.
TRINE_DEVICE float AboveFloor(float x) { return Abs(x) < quant::kKvTiny ? 0.0f : x; }

// Stores value i of a cache's row of f32, f16 or bf16.
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
