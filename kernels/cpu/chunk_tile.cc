#include "kernels/cpu/chunk_tile.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/finish.h"
#include "kernels/cpu/tile_terms.h"
#include "kernels/cpu/unpack.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Columns that share the loads of a tile's weights: as many as there are registers for.
constexpr int kGroupColumns = kNativeLanes == 16 ? 8 : 4;

constexpr FormatTraits WithoutOffset(FormatTraits traits) {
  traits.offset = 0;
  return traits;
}

// What the integer sums of a column's blocks begin with.
template <int kHalves>
struct TileStarts {
  int32_t value[kHalves][kTileChunks][kTileClasses];

  TRINE_INLINE void Set(const ActivationChunk* x, int64_t step, int count, int offset,
                        TileStarts* starts) {
    for (int t = 0; t < count; ++t) {
      for (int h = 0; h < kHalves; ++h) {
        const ActivationChunk& chunk = x[t * step];
        const int32_t* sums = kHalves == 2 ? chunk.half_sum[h] : chunk.sum;
        Store(Splat<8>(kSumBits) - Splat<8>(offset) * Load<8>(sums), starts->value[h][t]);
      }
    }
  }
};

// Slices whose sums are in registers at a time: two keep the multipliers busy where one leaves them
// waiting for its own sums. AArch64 has the registers for it, for formats that need few.
constexpr int SlicesAtOnce(FormatTraits traits) {
#if defined(__aarch64__)
  return traits.scales == Scales::kNone && traits.minimums == Minimums::kNone ? kSlices : 1;
#else
  (void)traits;
  return 1;
#endif
}

// By column and slice.
template <typename T, int kColumns, int kSteps>
using GroupOf = T[kColumns][kSteps];

// Half h of some slices of a block of the tile by the same half of the columns' blocks.
template <bool kSigned, int kColumns, int kSteps>
TRINE_INLINE void DotHalves(const uint8_t (&q)[8][4 * kTileRows], int row, int h,
                            const int8_t* const* a, GroupOf<SliceInts, kColumns, kSteps>& dots) {
  SliceBytes w[kSteps][4];
  for (int s = 0; s < kSteps; ++s) {
    for (int i = 0; i < 4; ++i) {
      w[s][i] = Load<4 * kSliceRows>(&q[4 * h + i][4 * (row + s * kSliceRows)]);
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    for (int s = 0; s < kSteps; ++s) Dot16<kSigned>(w[s], a[c] + 16 * h, &dots[c][s]);
  }
}

// I of docs/numerics.md, of block (j, t) for each column.
template <FormatTraits kTraits, int kColumns, int kSteps>
TRINE_INLINE void TileDots(const ChunkTile& tile, int j, int t, int row, const auto* starts,
                           const ActivationChunk* const* x, int64_t step,
                           GroupOf<SliceFloats, kColumns, kSteps>& scaled) {
  constexpr bool kSigned = kTraits.is_signed;
  GroupOf<SliceInts, kColumns, kSteps> dots;
  const auto start = [&](int h) {
    for (int c = 0; c < kColumns; ++c) {
      for (int s = 0; s < kSteps; ++s) {
        dots[c][s] = Splat<kSliceRows>(
            kDotBytes == TileBytesAre::kWeights ? kSumBits : starts[c].value[h][t][j]);
      }
    }
  };
  const auto scale = [&](int h, int s) {
    return Load<kSliceRows>(&tile.scale[h][j][t][row + s * kSliceRows]);
  };
  const int8_t* a[kColumns];
  for (int c = 0; c < kColumns; ++c) a[c] = x[c][t * step].q + quant::kGroupValues * j;
  start(0);
  DotHalves<kSigned, kColumns, kSteps>(tile.q[j][t], row, 0, a, dots);
  if constexpr (kTraits.scales == Scales::kHalf) {
    for (int s = 0; s < kSteps; ++s) {
      const SliceFloats first = scale(0, s);
      for (int c = 0; c < kColumns; ++c) scaled[c][s] = SumsToFloats(dots[c][s]) * first;
    }
    start(1);
    DotHalves<kSigned, kColumns, kSteps>(tile.q[j][t], row, 1, a, dots);
    for (int s = 0; s < kSteps; ++s) {
      const SliceFloats last = scale(1, s);
      for (int c = 0; c < kColumns; ++c) scaled[c][s] += SumsToFloats(dots[c][s]) * last;
    }
  } else {
    DotHalves<kSigned, kColumns, kSteps>(tile.q[j][t], row, 1, a, dots);
    for (int s = 0; s < kSteps; ++s) {
      for (int c = 0; c < kColumns; ++c) {
        scaled[c][s] = SumsToFloats(dots[c][s]);
        if constexpr (kTraits.scales == Scales::kBlock) scaled[c][s] = scaled[c][s] * scale(0, s);
      }
    }
  }
}

// The terms of block (j, t), added to the columns' sums.
template <FormatTraits kTraits, int kColumns, int kSteps, int kColumn = 0>
TRINE_INLINE void AddTileTerms(const ChunkTile& tile, int j, int t, int row, const auto& block,
                               const GroupOf<SliceFloats, kColumns, kSteps>& scaled,
                               GroupOf<SliceFloats, kColumns, kSteps>& acc) {
  if constexpr (kColumn < kColumns) {
    const ColumnFactors x = GroupFactors<kTraits, kColumns>::template Of<kColumn>(block);
    for (int s = 0; s < kSteps; ++s) {
      acc[kColumn][s] +=
          TileTerms<kTraits>(tile, j, t, row + s * kSliceRows, x, scaled[kColumn][s]);
    }
    AddTileTerms<kTraits, kColumns, kSteps, kColumn + 1>(tile, j, t, row, block, scaled, acc);
  }
}

// Of the orders that GCC puts these instructions in, the one for this core needs no spills.
#if defined(__aarch64__) && !defined(__clang__)
#define TRINE_TILE_TUNING [[gnu::target("tune=neoverse-n1"), gnu::noinline]]
#else
#define TRINE_TILE_TUNING
#endif

template <FormatTraits kTraits, int kColumns>
TRINE_TILE_TUNING void MultiplyGroup(const ChunkTile& tile, int blocks, int offset,
                                     const ActivationChunk* const* x, int64_t step,
                                     TileSums* sums) {
  constexpr int kHalves = kTraits.scales == Scales::kHalf ? 2 : 1;
  constexpr int kSteps = SlicesAtOnce(kTraits);
  TileStarts<kHalves> starts[kColumns];
  if constexpr (kDotBytes == TileBytesAre::kStored) {
    for (int c = 0; c < kColumns; ++c) {
      TileStarts<kHalves>::Set(x[c], step, BlocksOfClass(blocks, 0), offset, &starts[c]);
    }
  }
  using Factors = GroupFactors<kTraits, kColumns>;
  Factors factors;
  Factors::Set(x, step, BlocksOfClass(blocks, 0), &factors);
  for (int j = 0; j < kTileClasses; ++j) {
    const int count = BlocksOfClass(blocks, j);
    for (int row = 0; row < kTileRows; row += kSteps * kSliceRows) {
      GroupOf<SliceFloats, kColumns, kSteps> acc;
      for (int c = 0; c < kColumns; ++c) {
        for (int s = 0; s < kSteps; ++s) {
          acc[c][s] = Load<kSliceRows>(&sums[c].s[j][row + s * kSliceRows]);
        }
      }
      for (int t = 0; t < count; ++t) {
        GroupOf<SliceFloats, kColumns, kSteps> scaled;
        TileDots<kTraits, kColumns, kSteps>(tile, j, t, row, starts, x, step, scaled);
        AddTileTerms<kTraits, kColumns, kSteps>(tile, j, t, row, Factors::At(factors, j, t), scaled,
                                                acc);
      }
      for (int c = 0; c < kColumns; ++c) {
        for (int s = 0; s < kSteps; ++s) {
          Store(acc[c][s], &sums[c].s[j][row + s * kSliceRows]);
        }
      }
    }
  }
}

template <FormatTraits kTraits>
void MultiplyColumns(const ChunkTile& tile, int offset, int blocks, int64_t first_chunk,
                     const Columns& columns, TileSums* sums) {
  const int64_t step = columns.step;
  const ActivationChunk* x[kMaxColumns];
  for (int c = 0; c < columns.count; ++c) x[c] = columns.chunks[c] + first_chunk * step;
  int c = 0;
  for (; c + kGroupColumns <= columns.count; c += kGroupColumns) {
    MultiplyGroup<kTraits, kGroupColumns>(tile, blocks, offset, x + c, step, sums + c);
  }
  if constexpr (kGroupColumns > 4) {
    if (c + 4 <= columns.count) {
      MultiplyGroup<kTraits, 4>(tile, blocks, offset, x + c, step, sums + c);
      c += 4;
    }
  }
  if (c + 2 <= columns.count) {
    MultiplyGroup<kTraits, 2>(tile, blocks, offset, x + c, step, sums + c);
    c += 2;
  }
  if (c < columns.count) MultiplyGroup<kTraits, 1>(tile, blocks, offset, x + c, step, sums + c);
}

TRINE_INLINE TileFloats JoinClasses(const TileSums& sums) {
  TileFloats s[kTileClasses];
  for (int j = 0; j < kTileClasses; ++j) s[j] = Load<kTileRows>(sums.s[j]);
  for (int n = kTileClasses / 2; n > 0; n /= 2) {
    for (int j = 0; j < n; ++j) s[j] += s[j + n];
  }
  return s[0];
}

}  // namespace

// The formats' offsets come as a number, so that formats alike in the rest share the code.
void MultiplyTile(const ChunkTile& tile, FormatTraits traits, int blocks, int64_t first_chunk,
                  const Columns& columns, TileSums* sums) {
  const int offset = kDotBytes == TileBytesAre::kWeights ? 0 : OffsetOf(traits);
  const auto as = [&]<Type kType>() {
    MultiplyColumns<WithoutOffset(Format<kType>::kTraits)>(tile, offset, blocks, first_chunk,
                                                           columns, sums);
  };
  switch (traits.scales) {
    case Scales::kNone:
      if (traits.minimums != Minimums::kNone) return as.operator()<Type::kQ4_1>();
      return traits.is_signed ? as.operator()<Type::kQ8_0>() : as.operator()<Type::kQ4_0>();
    case Scales::kBlock:
      if (traits.minimums != Minimums::kNone) return as.operator()<Type::kQ4_K>();
      return as.operator()<Type::kIQ4_XS>();
    case Scales::kHalf:
      if (traits.minimums != Minimums::kNone) return as.operator()<Type::kQ2_K>();
      return as.operator()<Type::kQ6_K>();
  }
}

void FinishTile(const TileSums* sums, const WeightRows& weights, int64_t first, Range wanted,
                const Columns& columns) {
  for (int c = 0; c < columns.count; ++c) {
    FinishRows(JoinClasses(sums[c]), weights.bias, first, wanted, columns.y[c]);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
