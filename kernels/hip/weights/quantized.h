// Activations as products of quantised weights read them: columns of signed bytes in blocks of 32,
// each with its scale and the sums of its halves (docs/numerics.md, "Activation quantisation").
//
// The memory for n columns of b blocks has n * 32 b bytes, column by column; then n * b scales;
// then n * b words with the sums of both halves, 16 bits each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/platform.h"
#ifdef TRINE_DEVICE
#include "kernels/hip/gpu/device.h"
#endif

namespace trine::hip {

struct QuantizedColumns {
  uint32_t* values = nullptr;  // aligned to 16 bytes
  float* scales = nullptr;
  uint32_t* sums = nullptr;
  int64_t blocks = 0;  // in a column

  constexpr bool present() const { return values != nullptr; }
};

inline constexpr uint64_t QuantizedBytes(int64_t blocks, int64_t columns) {
  return static_cast<uint64_t>(blocks * columns) * 40;
}

inline QuantizedColumns QuantizedAt(std::byte* memory, int64_t blocks, int64_t columns) {
  auto* values = reinterpret_cast<uint32_t*>(memory);
  auto* scales = reinterpret_cast<float*>(values + blocks * columns * 8);
  return {values, scales, reinterpret_cast<uint32_t*>(scales + blocks * columns), blocks};
}

#ifdef TRINE_DEVICE
// Quantises a block with eight neighbouring lanes, each of which has four neighbouring values: lane
// i of a group has word i % 8 of its block. All 32 lanes must call it; lanes without `ours` write
// nothing.
TRINE_DEVICE void QuantizeBlock(const QuantizedColumns& to, Float4 v, int64_t column, int64_t block,
                                uint32_t word, bool ours) {
  // Floats that are not NaN have the same order as these integers.
  const auto magnitude = [](float x) { return Bits(x) & 0x7fffffffu; };
  const auto larger = [](uint32_t a, uint32_t b) { return a > b ? a : b; };
  uint32_t most =
      larger(larger(magnitude(v.x), magnitude(v.y)), larger(magnitude(v.z), magnitude(v.w)));
  for (int mask = 1; mask < 8; mask *= 2) most = larger(most, LaneXor(most, mask));
  float d = 0.0f;
  uint32_t bytes = 0;
  int32_t sum = 0;
  if (most >= Bits(quant::kTiny)) {
    d = FromBits(most) * FromBits(0x3c010204u);
    const float inverse = Recip(d);
    const auto quantize = [&](float x, int shift) {
      int32_t q = Round(x * inverse);
      q = q < -127 ? -127 : q > 127 ? 127 : q;
      bytes |= (static_cast<uint32_t>(q) & 0xffu) << shift;
      sum += q;
    };
    quantize(v.x, 0);
    quantize(v.y, 8);
    quantize(v.z, 16);
    quantize(v.w, 24);
  }
  for (int mask = 1; mask < 4; mask *= 2) sum += LaneXor(sum, mask);
  const int32_t other = LaneXor(sum, 4);  // sum of the other half
  if (!ours) return;
  const int64_t at = column * to.blocks + block;
  to.values[at * 8 + word] = bytes;
  if (word == 0) {
    to.scales[at] = d;
    to.sums[at] = (static_cast<uint32_t>(sum) & 0xffffu) | static_cast<uint32_t>(other) << 16;
  }
}
#endif

}  // namespace trine::hip
