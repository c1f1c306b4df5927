// Activations as products of quantised weights read them: columns of signed bytes in blocks of 32,
// each with its scale and the sums of its halves (docs/numerics.md, "Activation quantisation").
//
// The memory for n columns of b blocks has n * 32 b bytes, column by column; then n * b scales;
// then n * b words with the sums of both halves, 16 bits each. Many columns have their factors a
// second time, by the classes of the contract's sums, as the kernels of gemm/gemm_by_class.h read
// them: for each column and class a run of b / 8 factors, rounded up, those of blocks class,
// class + 8, and so on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/platform.h"
#ifdef TRINE_DEVICE
#include "kernels/hip/gpu/device.h"
#endif

namespace trine::hip {

struct alignas(8) ColumnFactors {
  float d, sum;  // sum: of both halves of a block
};

struct QuantizedColumns {
  uint32_t* values = nullptr;  // aligned to 16 bytes
  float* scales = nullptr;
  uint32_t* sums = nullptr;
  int64_t blocks = 0;                 // in a column
  ColumnFactors* by_class = nullptr;  // null: there are few columns

  constexpr bool present() const { return values != nullptr; }
};

// The least number of columns that have factors by class.
inline constexpr int64_t kByClassColumns = 9;

// The length of a class's run of factors.
inline constexpr int64_t ClassRun(int64_t blocks) { return (blocks + 7) / 8; }

inline constexpr uint64_t QuantizedBytes(int64_t blocks, int64_t columns) {
  const int64_t by_class = columns < kByClassColumns ? 0 : columns * 8 * ClassRun(blocks);
  return static_cast<uint64_t>(blocks * columns) * 40 +
         static_cast<uint64_t>(by_class) * sizeof(ColumnFactors);
}

inline QuantizedColumns QuantizedAt(std::byte* memory, int64_t blocks, int64_t columns) {
  auto* values = reinterpret_cast<uint32_t*>(memory);
  auto* scales = reinterpret_cast<float*>(values + blocks * columns * 8);
  auto* sums = reinterpret_cast<uint32_t*>(scales + blocks * columns);
  auto* by_class = reinterpret_cast<ColumnFactors*>(sums + blocks * columns);
  return {values, scales, sums, blocks, columns < kByClassColumns ? nullptr : by_class};
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
    if (to.by_class != nullptr) {
      to.by_class[(column * 8 + block % 8) * ClassRun(to.blocks) + block / 8] = {
          d, static_cast<float>(sum + other)};
    }
  }
}
#endif

}  // namespace trine::hip
