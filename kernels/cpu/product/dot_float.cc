// Multiplies rows of f32, f16 or bf16 weights with columns of f32 activations: 32 partial sums, k
// mod 32.
//
// With few columns the lanes of vectors are the classes. With many columns, some rows are converted
// once into a tile. There the rows lie side by side in the lanes, sorted by class. So a column's
// accumulator gets all terms of a class one after the other, and nothing is summed across lanes.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/finish.h"
#include "kernels/cpu/simd/row_readers.h"
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/vec_math.h"
#if defined(__ARM_FEATURE_FP16_FML)
#include "kernels/cpu/product/ordered_row.h"
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using quant::Type;

constexpr int kClasses = 32;
// Returns the least number of columns for which converting into a tile pays, as it was measured
// (docs/cpu-kernels.md#how-many-columns).
template <Type kType>
constexpr int TileMinColumns() {
  constexpr bool kHalves = kType != Type::kF32;
#if defined(__ARM_FEATURE_FP16_FML)
  return kHalves ? 16 : 4;
#elif defined(__AVX512F__)
  return kHalves ? 10 : 4;
#elif defined(__AVX2__)
  return kHalves ? 16 : 12;
#else
  (void)kHalves;
  return 4;
#endif
}
// Columns that share the loads of a tile's weights.
constexpr int kGroupColumns = 4;
// The steps of 32 values in a tile: 512 values of each row fit a first-level cache.
constexpr int kTileSteps = 16;

// The rows that are multiplied with a column at a time (two if their sums take few registers), and
// the distance at which weights are prefetched: in the same row or, with two rows, in the row after
// it. A processor's own prefetching stops at the ends of a mapped file's small pages, in which such
// rows lie. On a Xeon a loop like this one read F16 at 13 GB/s, the most that a thread could read;
// row by row and without prefetching it read 8. (On Neoverse V1 two rows at a time were a third
// slower than one.)
#if defined(__AVX512F__)
constexpr int kRowsAtOnce = 2;
#else
constexpr int kRowsAtOnce = 1;
#endif
#if defined(__x86_64__)
constexpr int64_t kPrefetchBytes = 1024;
#else
constexpr int64_t kPrefetchBytes = 0;
#endif

template <Type kType>
using Stored = typename RowReader<kType>::Element;

// A copy of `count` elements, followed by zeros.
template <typename T>
struct Padded {
  T value[kClasses];

  TRINE_INLINE Padded Of(const T* from, int64_t count) {
    Padded padded = {};
    for (int64_t i = 0; i < count; ++i) padded.value[i] = from[i];
    return padded;
  }
};

// Multiplies rows [row, row + kRows) with one column. kAsks: prefetches, for weights that are in no
// cache yet.
template <Type kType, int kRows, bool kAsks>
TRINE_INLINE void DotSome(const WeightRows& weights, int64_t row, const float* x, float* y) {
  const std::byte* const bytes = weights.data + row * weights.stride;
  const Stored<kType>* from[kRows];
  F32x32 sums[kRows];
  for (int r = 0; r < kRows; ++r) {
    from[r] = reinterpret_cast<const Stored<kType>*>(bytes + r * weights.stride);
    sums[r] = Splat<32>(0.0f);
  }
  const int64_t k = weights.k;
  int64_t i = 0;
  for (; i + kClasses <= k; i += kClasses) {
    const F32x32 a = Load<32>(x + i);
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kAsks && kPrefetchBytes != 0) {
        constexpr uintptr_t kStepBytes = kClasses * sizeof(Stored<kType>);
        // For the last rows this is beyond the weights; a prefetch there does no harm.
        const auto ahead =
            reinterpret_cast<uintptr_t>(bytes) +
            static_cast<uintptr_t>((r + kRows - 1) * weights.stride +
                                   i * int64_t{sizeof(Stored<kType>)} + kPrefetchBytes);
        for (uintptr_t line = 0; line < kStepBytes; line += 64) {
          __builtin_prefetch(reinterpret_cast<const void*>(ahead + line));
        }
      }
      sums[r] += ReadElements<kType, 32>(from[r] + i) * a;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (i < k) {  // products of zeros add nothing
      const auto w = Padded<Stored<kType>>::Of(from[r] + i, k - i);
      const auto a = Padded<float>::Of(x + i, k - i);
      sums[r] += ReadElements<kType, 32>(w.value) * Load<32>(a.value);
    }
    y[row + r] = Finish(JoinSums(sums[r]), weights.bias, row + r);
  }
}

#if defined(__ARM_FEATURE_FP16_FML)

// Multiplies a row with a column, without the last two steps of joining the partial sums.
template <Type kType, bool kAsks>
TRINE_INLINE F32x4 DotInOrder(const WeightRows& weights, int64_t row, const float* x) {
  constexpr int kMany = 4 * kClasses;
  const auto* w = reinterpret_cast<const uint16_t*>(weights.data + row * weights.stride);
  const int64_t k = weights.k;
  RowSums sums = {};
  int64_t i = 0;
  for (; i + kMany <= k; i += kMany) {
    sums = AddRowTerms<kType, kMany, kAsks>(w + i, x + i, sums);
  }
  for (; i + kClasses <= k; i += kClasses) {
    sums = AddRowTerms<kType, kClasses, kAsks>(w + i, x + i, sums);
  }
  if (i < k) {  // products of zeros add nothing
    const auto last = Padded<uint16_t>::Of(w + i, k - i);
    const auto a = Padded<float>::Of(x + i, k - i);
    sums = AddRowTerms<kType, kClasses, false>(last.value, a.value, sums);
  }
  const auto& s = sums.of;
  return {((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))};
}

// Multiplies four rows with a column. They share the last steps of joining.
template <Type kType, bool kAsks>
TRINE_INLINE void DotFourInOrder(const WeightRows& weights, int64_t row, Range rows, const float* x,
                                 float* y) {
  F32x4 sums[4];
  for (int r = 0; r < 4; ++r) sums[r] = DotInOrder<kType, kAsks>(weights, row + r, x);
  FinishRows(JoinSums(sums[0], sums[1], sums[2], sums[3]), weights.bias, row, rows, y);
}

template <Type kType>
void DotRowsInOrder(const WeightRows& weights, const Columns& columns, Range rows) {
  const SmallHalvesCount counts;
  int64_t row = rows.begin;
  for (; row + 4 <= rows.end; row += 4) {
    DotFourInOrder<kType, true>(weights, row, rows, columns.x[0], columns.y[0]);
    for (int c = 1; c < columns.count; ++c) {
      DotFourInOrder<kType, false>(weights, row, rows, columns.x[c], columns.y[c]);
    }
  }
  for (; row < rows.end; ++row) {
    for (int c = 0; c < columns.count; ++c) {
      const F32x4 sums = DotInOrder<kType, false>(weights, row, columns.x[c]);
      columns.y[c][row] = Finish(JoinSums(sums), weights.bias, row);
    }
  }
}

#endif

// Multiplies rows [row, row + kRows) with all columns.
template <Type kType, int kRows>
TRINE_INLINE void DotSomeByAll(const WeightRows& weights, const Columns& columns, int64_t row) {
  DotSome<kType, kRows, true>(weights, row, columns.x[0], columns.y[0]);
  for (int c = 1; c < columns.count; ++c) {
    DotSome<kType, kRows, false>(weights, row, columns.x[c], columns.y[c]);
  }
}

template <Type kType>
void DotRows(const WeightRows& weights, const Columns& columns, Range rows) {
#if defined(__ARM_FEATURE_FP16_FML)
  if constexpr (kType != Type::kF32) return DotRowsInOrder<kType>(weights, columns, rows);
#endif
  int64_t row = rows.begin;
  for (; row + kRowsAtOnce <= rows.end; row += kRowsAtOnce) {
    DotSomeByAll<kType, kRowsAtOnce>(weights, columns, row);
  }
  for (; row < rows.end; ++row) DotSomeByAll<kType, 1>(weights, columns, row);
}

// Weights by class, step and row.
struct alignas(64) FloatTile {
  float w[kClasses][kTileSteps][kTileRows];
};

// The partial sums of a column, by class and row.
struct alignas(64) FloatSums {
  float s[kClasses][kTileRows];
};

// Converts values [first, first + count) of kTileRows rows. The last step may be incomplete.
template <Type kType>
void FillTile(const std::byte* const* rows, int64_t first, int64_t count, FloatTile* tile) {
  for (int64_t k = 0; k < count; k += kClasses) {
    const int64_t step = k / kClasses;
    for (int row = 0; row < kTileRows; row += 8) {
      Padded<Stored<kType>> tails[8];
      const Stored<kType>* from[8];
      for (int r = 0; r < 8; ++r) {
        from[r] = reinterpret_cast<const Stored<kType>*>(rows[row + r]) + first + k;
        if (count - k < kClasses) {
          tails[r] = Padded<Stored<kType>>::Of(from[r], count - k);
          from[r] = tails[r].value;
        }
      }
      for (int j = 0; j < kClasses; j += 8) {
        F32x8 values[8];
        for (int r = 0; r < 8; ++r) values[r] = ReadElements<kType, 8>(from[r] + j);
        Transpose(values);
        for (int i = 0; i < 8; ++i) Store(values[i], &tile->w[j + i][step][row]);
      }
    }
  }
}

// Multiplies `count` values of a tile with those of kColumns columns and adds to their sums.
template <int kColumns>
void MultiplyTile(const FloatTile& tile, int64_t count, const float* const* x, FloatSums* sums) {
  for (int j = 0; j < kClasses; ++j) {
    TileFloats acc[kColumns];
    for (int c = 0; c < kColumns; ++c) acc[c] = Load<kTileRows>(sums[c].s[j]);
    for (int64_t k = j; k < count; k += kClasses) {
      const TileFloats w = Load<kTileRows>(tile.w[j][k / kClasses]);
      for (int c = 0; c < kColumns; ++c) acc[c] += w * Splat<kTileRows>(x[c][k]);
    }
    for (int c = 0; c < kColumns; ++c) Store(acc[c], sums[c].s[j]);
  }
}

TRINE_INLINE TileFloats JoinClasses(const FloatSums& sums) {
  TileFloats s[kClasses];
  for (int j = 0; j < kClasses; ++j) s[j] = Load<kTileRows>(sums.s[j]);
  for (int n = kClasses / 2; n > 0; n /= 2) {
    for (int j = 0; j < n; ++j) s[j] += s[j + n];
  }
  return s[0];
}

void MultiplyColumns(const FloatTile& tile, int64_t first, int64_t count, const Columns& columns,
                     FloatSums* sums) {
  const float* x[kMaxColumns];
  for (int c = 0; c < columns.count; ++c) x[c] = columns.x[c] + first;
  int c = 0;
  for (; c + kGroupColumns <= columns.count; c += kGroupColumns) {
    MultiplyTile<kGroupColumns>(tile, count, x + c, sums + c);
  }
  for (; c < columns.count; ++c) MultiplyTile<1>(tile, count, x + c, sums + c);
}

// Multiplies rows [first, first + count), count <= kTileRows.
template <Type kType>
void DotTile(const WeightRows& weights, const Columns& columns, int64_t first, int count) {
  const std::byte* rows[kTileRows];
  for (int r = 0; r < kTileRows; ++r) {  // lanes without a row repeat the last row
    rows[r] = weights.data + (first + (r < count ? r : count - 1)) * weights.stride;
  }
  FloatTile tile;
  FloatSums sums[kMaxColumns];
  __builtin_memset(sums, 0, static_cast<size_t>(columns.count) * sizeof(FloatSums));
  constexpr int64_t kTileValues = kTileSteps * kClasses;
  for (int64_t k = 0; k < weights.k; k += kTileValues) {
    const int64_t n = weights.k - k < kTileValues ? weights.k - k : kTileValues;
    FillTile<kType>(rows, k, n, &tile);
    MultiplyColumns(tile, k, n, columns, sums);
  }
  for (int c = 0; c < columns.count; ++c) {
    FinishRows(JoinClasses(sums[c]), weights.bias, first, {first, first + count}, columns.y[c]);
  }
}

template <Type kType>
void DotColumnsOf(const WeightRows& weights, const Columns& columns, Range rows) {
  if (!GoByTiles(columns, TileMinColumns<kType>())) return DotRows<kType>(weights, columns, rows);
  for (int64_t first = rows.begin; first < rows.end; first += kTileRows) {
    const int64_t left = rows.end - first;
    DotTile<kType>(weights, columns, first, static_cast<int>(left < kTileRows ? left : kTileRows));
  }
}

}  // namespace

void DotFloatColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  switch (weights.type) {
    case Type::kF16:
      return DotColumnsOf<Type::kF16>(weights, columns, rows);
    case Type::kBF16:
      return DotColumnsOf<Type::kBF16>(weights, columns, rows);
    default:
      return DotColumnsOf<Type::kF32>(weights, columns, rows);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
