#include "kernels/cpu/chunk_tile.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/amx_tile.h"
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

// Half h of a slice of a block of the tile by the same half of the columns' blocks.
template <bool kSigned, int kColumns>
TRINE_INLINE void DotHalves(const uint8_t (&q)[8][4 * kTileRows], int row, int h,
                            const int8_t* const* a, SliceInts* dots) {
  SliceBytes w[4];
  for (int i = 0; i < 4; ++i) w[i] = Load<4 * kSliceRows>(&q[4 * h + i][4 * row]);
  for (int c = 0; c < kColumns; ++c) Dot16<kSigned>(w, a[c] + 16 * h, &dots[c]);
}

// I of docs/numerics.md, of block (j, t) for each column.
template <FormatTraits kTraits, int kColumns>
TRINE_INLINE void TileDots(const ChunkTile& tile, int j, int t, int row, const auto* starts,
                           const ActivationChunk* const* x, int64_t step, SliceFloats* scaled) {
  constexpr bool kSigned = kTraits.is_signed;
  const auto start = [&](int c, int h) {
    return Splat<kSliceRows>(kDotBytes == TileBytesAre::kWeights ? kSumBits
                                                                 : starts[c].value[h][t][j]);
  };
  const int8_t* a[kColumns];
  SliceInts dots[kColumns];
  for (int c = 0; c < kColumns; ++c) {
    a[c] = x[c][t * step].q + quant::kGroupValues * j;
    dots[c] = start(c, 0);
  }
  DotHalves<kSigned, kColumns>(tile.q[j][t], row, 0, a, dots);
  if constexpr (kTraits.scales == Scales::kHalf) {
    const SliceFloats first = Load<kSliceRows>(&tile.scale[0][j][t][row]);
    for (int c = 0; c < kColumns; ++c) {
      scaled[c] = SumsToFloats(dots[c]) * first;
      dots[c] = start(c, 1);
    }
    DotHalves<kSigned, kColumns>(tile.q[j][t], row, 1, a, dots);
    const SliceFloats last = Load<kSliceRows>(&tile.scale[1][j][t][row]);
    for (int c = 0; c < kColumns; ++c) scaled[c] += SumsToFloats(dots[c]) * last;
  } else {
    DotHalves<kSigned, kColumns>(tile.q[j][t], row, 1, a, dots);
    for (int c = 0; c < kColumns; ++c) {
      scaled[c] = SumsToFloats(dots[c]);
      if constexpr (kTraits.scales == Scales::kBlock) {
        scaled[c] = scaled[c] * Load<kSliceRows>(&tile.scale[0][j][t][row]);
      }
    }
  }
}

template <FormatTraits kTraits, int kColumns>
void MultiplyGroup(const ChunkTile& tile, int count, int offset, const ActivationChunk* const* x,
                   int64_t step, TileSums* sums) {
  constexpr int kHalves = kTraits.scales == Scales::kHalf ? 2 : 1;
  TileStarts<kHalves> starts[kColumns];
  if constexpr (kDotBytes == TileBytesAre::kStored) {
    for (int c = 0; c < kColumns; ++c) {
      TileStarts<kHalves>::Set(x[c], step, count, offset, &starts[c]);
    }
  }
  for (int j = 0; j < kTileClasses; ++j) {
    for (int row = 0; row < kTileRows; row += kSliceRows) {
      SliceFloats acc[kColumns];
      for (int c = 0; c < kColumns; ++c) acc[c] = Load<kSliceRows>(&sums[c].s[j][row]);
      for (int t = 0; t < count; ++t) {
        SliceFloats scaled[kColumns];
        TileDots<kTraits, kColumns>(tile, j, t, row, starts, x, step, scaled);
        for (int c = 0; c < kColumns; ++c) {
          acc[c] += TileTerms<kTraits>(tile, j, t, row, x[c][t * step], scaled[c]);
        }
      }
      for (int c = 0; c < kColumns; ++c) Store(acc[c], &sums[c].s[j][row]);
    }
  }
}

template <FormatTraits kTraits>
void MultiplyColumns(const ChunkTile& tile, int offset, TileBytesAre bytes, int count,
                     int64_t first_chunk, const Columns& columns, TileSums* sums) {
  const int64_t step = columns.step;
  const ActivationChunk* x[kPaddedColumns];
  for (int c = 0; c < columns.count; ++c) x[c] = columns.chunks[c] + first_chunk * step;
#if defined(__AMX_INT8__)
  if (bytes != kDotBytes) return MultiplyByAmx<kTraits>(tile, count, x, columns, sums);
#else
  (void)bytes;
#endif
  int c = 0;
  for (; c + kGroupColumns <= columns.count; c += kGroupColumns) {
    MultiplyGroup<kTraits, kGroupColumns>(tile, count, offset, x + c, step, sums + c);
  }
  if constexpr (kGroupColumns > 4) {
    if (c + 4 <= columns.count) {
      MultiplyGroup<kTraits, 4>(tile, count, offset, x + c, step, sums + c);
      c += 4;
    }
  }
  if (c + 2 <= columns.count) {
    MultiplyGroup<kTraits, 2>(tile, count, offset, x + c, step, sums + c);
    c += 2;
  }
  if (c < columns.count) MultiplyGroup<kTraits, 1>(tile, count, offset, x + c, step, sums + c);
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

TileBytesAre WantedBytes(const Columns& columns) {
#if defined(__AMX_INT8__)
  return CanUseAmx(columns) ? TileBytesAre::kWeights : kDotBytes;
#else
  (void)columns;
  return kDotBytes;
#endif
}

// The formats' offsets come as a number, so that formats alike in the rest share the code.
void MultiplyTile(const ChunkTile& tile, FormatTraits traits, TileBytesAre bytes, int count,
                  int64_t first_chunk, const Columns& columns, TileSums* sums) {
  const int offset = bytes == TileBytesAre::kWeights ? 0 : OffsetOf(traits);
  const auto as = [&]<Type kType>() {
    MultiplyColumns<WithoutOffset(Format<kType>::kTraits)>(tile, offset, bytes, count, first_chunk,
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
