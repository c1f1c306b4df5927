// Multiplies one row with one column, for few columns: every weight is unpacked where it is used.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/levels/activations.h"
#include "kernels/cpu/product/unpack.h"
#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Reads chunk `index` of a row. REQUIRES: the row has all blocks of the chunk.
template <Type kType>
TRINE_INLINE void ReadWholeChunk(const std::byte* row, int64_t index, Chunk* chunk) {
  using Block = typename Format<kType>::Block;
  constexpr int64_t kBlocks = Format<kType>::kBlockValues == quant::kGroupValues ? 8 : 1;
  Format<kType>::Unpack(reinterpret_cast<const Block*>(row) + kBlocks * index, chunk);
}

// Reads chunk `index` of a row of k weights, with zero bytes beyond the row's end. There the
// activations are zeros too, so the terms are +0 or -0 and change no sum.
template <Type kType>
[[gnu::noinline]] void ReadChunk(const std::byte* row, int64_t index, int64_t k, Chunk* chunk) {
  using Block = typename Format<kType>::Block;
  if constexpr (Format<kType>::kBlockValues == quant::kGroupValues) {
    const int64_t first = quant::kSuperGroups * index;
    const int64_t left = k / quant::kGroupValues - first;
    Block padded[quant::kSuperGroups];
    if (left < quant::kSuperGroups) {
      __builtin_memset(padded, 0, sizeof(padded));
      __builtin_memcpy(padded, row + first * static_cast<int64_t>(sizeof(Block)),
                       static_cast<uint64_t>(left) * sizeof(Block));
      row = reinterpret_cast<const std::byte*>(padded);
      index = 0;
    }
    ReadWholeChunk<kType>(row, index, chunk);
  } else {
    ReadWholeChunk<kType>(row, index, chunk);
  }
}

// Return the integers I and M of docs/numerics.md, of eight blocks.
template <FormatTraits kTraits>
TRINE_INLINE I32x8 ScaledDots(const Chunk& w, const ActivationChunk& a) {
  constexpr int kOffset = OffsetOf(kTraits);
  if constexpr (kTraits.scales == Scales::kHalf) {
    HalfSums dots = HalfDots<kTraits.is_signed>(w.q, a.q);
    if constexpr (kOffset != 0) {
      dots.first = dots.first - Splat<8>(kOffset) * Load<8>(a.half_sum[0]);
      dots.last = dots.last - Splat<8>(kOffset) * Load<8>(a.half_sum[1]);
    }
    return w.scale[0] * dots.first + w.scale[1] * dots.last;
  } else {
    I32x8 dots = BlockDots<kTraits.is_signed>(w.q, a.q);
    if constexpr (kOffset != 0) dots = dots - Splat<8>(kOffset) * Load<8>(a.sum);
    return kTraits.scales == Scales::kBlock ? w.scale[0] * dots : dots;
  }
}

template <FormatTraits kTraits>
TRINE_INLINE I32x8 ScaledMinimums(const Chunk& w, const ActivationChunk& a) {
  if constexpr (kTraits.minimums == Minimums::kHalf) {
    return w.min[0] * Load<8>(a.half_sum[0]) + w.min[1] * Load<8>(a.half_sum[1]);
  } else if constexpr (kTraits.minimums == Minimums::kBlock) {
    return w.min[0] * Load<8>(a.sum);
  } else {
    return Splat<8>(0) - Load<8>(a.sum);
  }
}

// Returns one term per block.
template <FormatTraits kTraits>
TRINE_INLINE F32x8 Terms(const Chunk& w, const ActivationChunk& a) {
  const F32x8 d = Load<8>(a.d);
  F32x8 terms = (w.d * d) * Convert<float>(ScaledDots<kTraits>(w, a));
  if constexpr (kTraits.minimums != Minimums::kNone) {
    terms = terms - (w.dmin * d) * Convert<float>(ScaledMinimums<kTraits>(w, a));
  }
  return terms;
}

// Returns the dot product of a row with a column. The eight blocks of a chunk are the eight classes
// of the sum. `step`: the distance from a chunk of x to the next.
template <Type kType>
TRINE_INLINE float ChunkDot(const std::byte* row, int64_t k, const ActivationChunk* x,
                            int64_t step) {
  F32x8 sums = Splat<8>(0.0f);
  const int64_t whole = k / quant::kSuperValues;
  for (int64_t i = 0; i < whole; ++i) {
    Chunk w;  // in registers, unlike the chunk below, whose address leaves the function
    ReadWholeChunk<kType>(row, i, &w);
    sums += Terms<Format<kType>::kTraits>(w, x[i * step]);
  }
  if (k % quant::kSuperValues != 0) {
    Chunk w;
    ReadChunk<kType>(row, whole, k, &w);
    sums += Terms<Format<kType>::kTraits>(w, x[whole * step]);
  }
  return JoinSums(sums);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
