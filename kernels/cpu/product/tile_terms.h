// Computes the float part of a tile's products: one term per row, column and block.

#pragma once

#include "kernels/cpu/levels/activations.h"
#include "kernels/cpu/product/chunk_tile.h"
#include "kernels/cpu/simd/transpose.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The numbers that the columns of a cell contribute to a block's terms, in the lanes of every row:
// scales, sums of values, sums of halves. The compiler drops those that a format does not use.
struct ColumnFactors {
  SliceFloats d, sum, half_sum[2];
};

// Returns the factors of block j of a column's chunk.
TRINE_INLINE ColumnFactors FactorsOf(const ActivationChunk& x, int j) {
  const auto sum = [](int32_t value) { return Splat<kSliceRows>(static_cast<float>(value)); };
  return {Splat<kSliceRows>(x.d[j]), sum(x.sum[j]), {sum(x.half_sum[0][j]), sum(x.half_sum[1][j])}};
}

// The factors of a group of columns, for all blocks of a tile. kColumns is the number of cells.
template <FormatTraits kTraits, int kColumns>
class GroupFactors {
 public:
#if defined(__aarch64__)
  // Multiplying by a lane costs no more than multiplying by a vector, so one load brings a factor
  // of four columns. Splats instead would cost as much as four multiplications.
  static constexpr int kLaneColumns = 4;
  static_assert(kColumns * kCellColumns <= kLaneColumns);

  TRINE_INLINE void Set(const ActivationChunk* const* x, int64_t step, int chunks,
                        GroupFactors* factors) {
    for (int t = 0; t < chunks; ++t) {
      const auto column = [&](int c) -> const ActivationChunk& {
        return x[c < kColumns * kCellColumns ? c : 0][t * step];
      };
      SetLanes([&](int c) { return Load<8>(column(c).d); }, factors->d_[t]);
      if constexpr (kTraits.minimums == Minimums::kHalf) {
        for (int h = 0; h < 2; ++h) {
          SetLanes([&](int c) { return Convert<float>(Load<8>(column(c).half_sum[h])); },
                   factors->sum_[h][t]);
        }
      } else if constexpr (kTraits.minimums != Minimums::kNone) {
        SetLanes([&](int c) { return Convert<float>(Load<8>(column(c).sum)); },
                 factors->sum_[0][t]);
      }
    }
  }

  // The factors of block (j, t); each column has a lane.
  struct Lanes {
    float32x4_t d, sum[2];
  };
  TRINE_INLINE Lanes At(const GroupFactors& factors, int j, int t) {
    Lanes lanes;
    lanes.d = vld1q_f32(factors.d_[t][j]);
    for (int h = 0; h < kSums; ++h) lanes.sum[h] = vld1q_f32(factors.sum_[h][t][j]);
    return lanes;
  }
  template <int kColumn>
  TRINE_INLINE ColumnFactors Of(const Lanes& lanes) {
    const auto splat = [](float32x4_t x) __attribute__((always_inline))->SliceFloats {
      if constexpr (kPairs) {
        return {vreinterpretq_f32_f64(vdupq_laneq_f64(vreinterpretq_f64_f32(x), kColumn))};
      } else {
        return {vdupq_laneq_f32(x, kColumn)};
      }
    };
    ColumnFactors factors;
    factors.d = splat(lanes.d);
    if constexpr (kTraits.minimums == Minimums::kHalf) {
      for (int h = 0; h < 2; ++h) factors.half_sum[h] = splat(lanes.sum[h]);
    } else if constexpr (kTraits.minimums != Minimums::kNone) {
      factors.sum = splat(lanes.sum[0]);
    }
    return factors;
  }

 private:
  static constexpr int kSums = kTraits.minimums == Minimums::kHalf   ? 2
                               : kTraits.minimums == Minimums::kNone ? 0
                                                                     : 1;
  using ByClass = float[kTileClasses][kLaneColumns];

  TRINE_INLINE void SetLanes(const auto& classes_of, ByClass& lanes) {
    const F32x8 x[kLaneColumns] = {classes_of(0), classes_of(1), classes_of(2), classes_of(3)};
    const Square4<float> low = Transposed(Low(x[0]), Low(x[1]), Low(x[2]), Low(x[3]));
    const Square4<float> high = Transposed(High(x[0]), High(x[1]), High(x[2]), High(x[3]));
    for (int j = 0; j < 4; ++j) {
      Store(low.row[j], lanes[j]);
      Store(high.row[j], lanes[4 + j]);
    }
  }

  ByClass d_[kTileChunks], sum_[kSums == 0 ? 1 : kSums][kTileChunks];
#else
  // A splat is part of the multiplication that reads it from memory.
  TRINE_INLINE void Set(const ActivationChunk* const* x, int64_t step, int, GroupFactors* factors) {
    factors->x_ = x;
    factors->step_ = step;
  }
  struct Block {
    const ActivationChunk* const* x;
    int64_t offset;
    int j;
  };
  TRINE_INLINE Block At(const GroupFactors& factors, int j, int t) {
    return {factors.x_, t * factors.step_, j};
  }
  template <int kColumn>
  TRINE_INLINE ColumnFactors Of(const Block& block) {
    return FactorsOf(block.x[kColumn][block.offset], block.j);
  }

 private:
  const ActivationChunk* const* x_;
  int64_t step_;
#endif
};

// Returns M of docs/numerics.md, as a float, of block (j, t), for the cell that begins at `lane`.
template <FormatTraits kTraits>
TRINE_INLINE SliceFloats TileMinimums(const ChunkTile& tile, int j, int t, int lane,
                                      const ColumnFactors& x) {
  if constexpr (kTraits.minimums == Minimums::kHalf) {
    return Load<kSliceRows>(&tile.min[0][j][t][lane]) * x.half_sum[0] +
           Load<kSliceRows>(&tile.min[1][j][t][lane]) * x.half_sum[1];
  } else if constexpr (kTraits.minimums == Minimums::kBlock) {
    return Load<kSliceRows>(&tile.min[0][j][t][lane]) * x.sum;
  } else {
    return Splat<kSliceRows>(0.0f) - x.sum;
  }
}

// Returns the terms of block (j, t) for the cell that begins at `lane`. `scaled`: I, as a float.
template <FormatTraits kTraits>
TRINE_INLINE SliceFloats TileTerms(const ChunkTile& tile, int j, int t, int lane,
                                   const ColumnFactors& x, SliceFloats scaled) {
  const SliceFloats terms = (Load<kSliceRows>(&tile.d[j][t][lane]) * x.d) * scaled;
  if constexpr (kTraits.minimums == Minimums::kNone) {
    return terms;
  } else {
    return terms - (Load<kSliceRows>(&tile.dmin[j][t][lane]) * x.d) *
                       TileMinimums<kTraits>(tile, j, t, lane, x);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
