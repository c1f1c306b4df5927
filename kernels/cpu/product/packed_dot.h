// Multiplies groups of packed weights with few columns. A block's values go from memory through
// registers into the sums of its class; each row has its own lane.

#pragma once

#include <cstdint>

#include "kernels/cpu/levels/activations.h"
#include "kernels/cpu/levels/packed.h"
#include "kernels/cpu/product/packed_format.h"
#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr int kSumClasses = quant::kSuperGroups;

// A column of activations, with start values for the integer sums of its blocks: by chunk, half (if
// the halves of a block have their own scales) and block. A start value subtracts the offset of an
// unsigned format. It includes kSumBits if the sum becomes a float before it is scaled.
template <Type kType>
struct PackedColumn {
  static constexpr int kOffset = OffsetOf(Packed<kType>::kTraits);
  static constexpr bool kHalves = Packed<kType>::kTraits.scales == Scales::kHalf;
  static constexpr int kStarts = kHalves ? 2 : 1;
  static constexpr bool kScalesIntegers = kHalves && kScaleHalvesAsIntegers;
  static constexpr int32_t kStart = kScalesIntegers ? 0 : kSumBits;
  using Dots = SliceDots<Packed<kType>::kInPairs>;

  const ActivationChunk* x;
  int64_t step;     // the distance from a chunk of x to the next
  const int8_t* q;  // the values of its chunks, in x or elsewhere
  int64_t q_step;   // bytes from a chunk's values to those of the next
  int32_t start[kOffset == 0 ? 1 : kMaxPackedValues / quant::kSuperValues][kStarts][kSumClasses];

  TRINE_INLINE void Set(const ActivationChunk* x, int64_t step, int64_t chunks,
                        PackedColumn* column) {
    column->x = x;
    column->step = step;
    column->q = x->q;
    column->q_step = step * int64_t{sizeof(ActivationChunk)};
    if constexpr (kOffset != 0) {
      for (int64_t t = 0; t < chunks; ++t) {
        for (int h = 0; h < kStarts; ++h) {
          const ActivationChunk& chunk = x[t * step];
          const int32_t* sums = kHalves ? chunk.half_sum[h] : chunk.sum;
          Store(Splat<8>(kStart) - Splat<8>(kOffset) * Load<8>(sums), column->start[t][h]);
        }
      }
    }
  }
  TRINE_INLINE Dots Start(const PackedColumn& column, int64_t t, int h, int j) {
    if constexpr (kOffset == 0) return Dots::Start(kStart);
    return Dots::Start(column.start[t][h][j]);
  }
};

// Computes I of docs/numerics.md, as a float, for a block of weights and block j of chunk t of each
// column.
template <Type kType, int kColumns>
TRINE_INLINE void PackedDots(const uint8_t* block, const BlockScales& s,
                             const PackedColumn<kType>* columns, int64_t t, int j,
                             SliceFloats* scaled) {
  using Column = PackedColumn<kType>;
  using Dots = typename Column::Dots;
  constexpr bool kSigned = Packed<kType>::kTraits.is_signed;
  Dots dots[kColumns];
  SliceInts first[kColumns];
  SliceBytes w[4];
  LoadHalf<kType, 0>(block, w);
  for (int c = 0; c < kColumns; ++c) {
    dots[c] = Column::Start(columns[c], t, 0, j);
    const int8_t* a = columns[c].q + t * columns[c].q_step + quant::kGroupValues * j;
    Dots::template Add<kSigned>(w, a, &dots[c]);
    if constexpr (Column::kHalves) {
      if constexpr (Column::kScalesIntegers) {
        first[c] = Dots::Sums(dots[c]) * s.integer_scale[0];
      } else {
        scaled[c] = SumsToFloats(Dots::Sums(dots[c])) * s.scale[0];
      }
      dots[c] = Column::Start(columns[c], t, 1, j);
    }
  }
  LoadHalf<kType, 1>(block, w);
  for (int c = 0; c < kColumns; ++c) {
    const int8_t* a = columns[c].q + t * columns[c].q_step + quant::kGroupValues * j + 16;
    Dots::template Add<kSigned>(w, a, &dots[c]);
    const SliceInts last = Dots::Sums(dots[c]);
    if constexpr (Column::kScalesIntegers) {
      scaled[c] = Convert<float>(first[c] + last * s.integer_scale[1]);
    } else if constexpr (Column::kHalves) {
      scaled[c] = scaled[c] + SumsToFloats(last) * s.scale[1];
    } else if constexpr (Packed<kType>::kScales == 1) {
      scaled[c] = SumsToFloats(last) * s.scale[0];
    } else {
      scaled[c] = SumsToFloats(last);
    }
  }
}

// The sums of a group, by column, class and slice.
template <int kColumns>
using GroupSums = SliceFloats[kColumns][kSumClasses][kSlices];

// Adds one term per row and column to the sums of class j.
template <Type kType, int kColumns>
TRINE_INLINE void AddTerms(const uint8_t* chunk, int blocks, const PackedColumn<kType>* columns,
                           int64_t t, int j, GroupSums<kColumns>& sums) {
  using P = Packed<kType>;
  const uint8_t* block = chunk + P::HeaderBytes(blocks) + j * P::kBlockBytes;
  TRINE_UNROLL
  for (int i = 0; i < kSlices; ++i) {
    const int row = i * kSliceRows;
    const BlockScales s = LoadScales<kType>(chunk, blocks, j, row);
    SliceFloats scaled[kColumns];
    PackedDots<kType, kColumns>(block + 4 * row, s, columns, t, j, scaled);
    for (int c = 0; c < kColumns; ++c) {
      const ActivationChunk& x = columns[c].x[t * columns[c].step];
      const SliceFloats d_a = Splat<kSliceRows>(x.d[j]);
      SliceFloats terms = (s.d * d_a) * scaled[c];
      if constexpr (P::kTraits.minimums == Minimums::kBlock) {
        const SliceFloats sum = Splat<kSliceRows>(static_cast<float>(x.sum[j]));
        terms = terms - (s.dmin * d_a) * (s.min * sum);
      } else if constexpr (P::kTraits.minimums == Minimums::kAdded) {
        const SliceFloats sum = Splat<kSliceRows>(static_cast<float>(-x.sum[j]));
        terms = terms - (s.dmin * d_a) * sum;
      }
      sums[c][j][i] += terms;
    }
  }
}

// The distance, in bytes, at which weights are prefetched; 0: they are not. On a Xeon this is a
// tenth faster than no prefetching, and faster than most other distances. On Neoverse N1
// prefetching four kilobytes ahead was a quarter slower than none.
#if defined(__x86_64__)
constexpr int kPrefetchBytes = 1024;
#else
constexpr int kPrefetchBytes = 0;
#endif

template <Type kType>
TRINE_INLINE void PrefetchBlock(const uint8_t* block) {
  if constexpr (kPrefetchBytes != 0) {
    TRINE_UNROLL
    for (int i = 0; i < Packed<kType>::kBlockBytes; i += 64) {
      __builtin_prefetch(block + kPrefetchBytes + i);
    }
  }
}

// Adds the blocks of an incomplete last chunk, for one column. Works on a copy of the sums: its
// loop indexes them, and if it indexed `sums` itself, they could nowhere be in registers.
template <Type kType>
TRINE_INLINE void AddRest(const uint8_t* chunk, int blocks, const PackedColumn<kType>* column,
                          int64_t t, GroupSums<1>& sums) {
  GroupSums<1> own;
  TRINE_UNROLL
  for (int j = 0; j < kSumClasses; ++j) {
    for (int i = 0; i < kSlices; ++i) own[0][j][i] = sums[0][j][i];
  }
  TRINE_NO_UNROLL
  for (int j = 0; j < blocks; ++j) AddTerms<kType, 1>(chunk, blocks, column, t, j, own);
  TRINE_UNROLL
  for (int j = 0; j < kSumClasses; ++j) {
    for (int i = 0; i < kSlices; ++i) sums[0][j][i] = own[0][j][i];
  }
}

// Multiplies a group, whose rows have `blocks` blocks, with kColumns columns. Sets `dots`, by
// column and slice.
template <Type kType, int kColumns>
TRINE_INLINE void DotGroup(const uint8_t* chunk, int64_t blocks, const PackedColumn<kType>* columns,
                           SliceFloats (&dots)[kColumns][kSlices]) {
  GroupSums<kColumns> sums;
  for (int c = 0; c < kColumns; ++c) {
    TRINE_UNROLL
    for (int j = 0; j < kSumClasses; ++j) {
      for (int i = 0; i < kSlices; ++i) sums[c][j][i] = Splat<kSliceRows>(0.0f);
    }
  }
  const int64_t whole = blocks / kSumClasses;
  const int rest = static_cast<int>(blocks % kSumClasses);
  for (int64_t t = 0; t < whole; ++t) {
    const auto add = [&](int j) __attribute__((always_inline)) {
      PrefetchBlock<kType>(chunk + j * Packed<kType>::kBlockBytes);
      AddTerms<kType, kColumns>(chunk, kSumClasses, columns, t, j, sums);
    };
    if constexpr (kColumns == 1) {  // the sums are registers
      TRINE_UNROLL
      for (int j = 0; j < kSumClasses; ++j) {
        add(j);
#if defined(__aarch64__)
        // Keeps the loads of a block in their place: earlier loads would take the sums' registers.
        if constexpr (!Packed<kType>::kInPairs) asm volatile("" ::: "memory");
#endif
      }
    } else {  // too few registers, and unrolled the code would be large
      TRINE_NO_UNROLL
      for (int j = 0; j < kSumClasses; ++j) add(j);
    }
    chunk += Packed<kType>::ChunkBytes(kSumClasses);
  }
  if constexpr (Format<kType>::kBlockValues == quant::kGroupValues) {
    if constexpr (kColumns == 1) {
      if (rest != 0) AddRest<kType>(chunk, rest, columns, whole, sums);
    } else {
      TRINE_NO_UNROLL
      for (int j = 0; j < rest; ++j) {
        AddTerms<kType, kColumns>(chunk, rest, columns, whole, j, sums);
      }
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    for (int i = 0; i < kSlices; ++i) {
      const auto s = [&](int j) { return sums[c][j][i]; };
      dots[c][i] = ((s(0) + s(4)) + (s(2) + s(6))) + ((s(1) + s(5)) + (s(3) + s(7)));
    }
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
