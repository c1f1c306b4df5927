// Some rows by many columns: the rows are unpacked once into a tile, in which they lie side by side
// in the lanes of a vector, and the tile is multiplied with one group of columns after the other.
//
// The blocks of a tile are sorted by class (block index mod 8), so that one accumulator per column
// sees all terms of its class in a row. A long row takes several tiles; the sums of all classes
// are kept between them.

#ifndef TRINE_KERNELS_CPU_CHUNK_TILE_H_
#define TRINE_KERNELS_CPU_CHUNK_TILE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/activations.h"
#include "kernels/cpu/chunk_dot.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/unpack.h"
#include "kernels/cpu/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr int kClasses = 8;
constexpr int kTileChunks = 8;  // a tile of 2048 columns of weights fits a first-level cache

// By class, chunk and row.
using TileOfFloats = float[kClasses][kTileChunks][kTileRows];
using TileOfInts = int32_t[kClasses][kTileChunks][kTileRows];

struct alignas(64) ChunkTile {
  uint8_t q[kClasses][kTileChunks][8][4 * kTileRows];  // eight times four weights of each row
  TileOfFloats d, dmin;
  TileOfInts scale[2], min[2];
};

template <int N>
TRINE_INLINE U32<N / 4> AsWords(Vec<uint8_t, N> x) {
  if constexpr (U32<N / 4>::kIsNative) {
    return {(typename U32<N / 4>::Raw) x.v};
  } else {
    return {AsWords(x.lo), AsWords(x.hi)};
  }
}

// One vector of each of eight rows, its lanes being classes, into rows [row, row + 8) of a tile.
template <typename T>
TRINE_INLINE void StoreClasses(Vec<T, 8> (&rows)[8], int t, int row,
                               T (*tile)[kTileChunks][kTileRows]) {
  Transpose(rows);
  for (int j = 0; j < kClasses; ++j) Store(rows[j], &tile[j][t][row]);
}

template <FormatTraits kTraits>
TRINE_INLINE void StoreChunks(const Chunk (&chunks)[8], int t, int row, ChunkTile* tile) {
  for (int j = 0; j < kClasses; ++j) {
    U32x8 words[8];
    for (int r = 0; r < 8; ++r) words[r] = AsWords(chunks[r].q[j]);
    Transpose(words);
    for (int i = 0; i < 8; ++i) {
      __builtin_memcpy(&tile->q[j][t][i][4 * row], &words[i], sizeof(words[i]));
    }
  }
  F32x8 floats[8];
  for (int r = 0; r < 8; ++r) floats[r] = chunks[r].d;
  StoreClasses(floats, t, row, tile->d);
  if constexpr (kTraits.minimums != Minimums::kNone) {
    for (int r = 0; r < 8; ++r) floats[r] = chunks[r].dmin;
    StoreClasses(floats, t, row, tile->dmin);
  }
  constexpr int kScales = kTraits.scales == Scales::kHalf    ? 2
                          : kTraits.scales == Scales::kBlock ? 1
                                                             : 0;
  constexpr int kMins = kTraits.minimums == Minimums::kHalf    ? 2
                        : kTraits.minimums == Minimums::kBlock ? 1
                                                               : 0;
  I32x8 ints[8];
  for (int h = 0; h < kScales; ++h) {
    for (int r = 0; r < 8; ++r) ints[r] = chunks[r].scale[h];
    StoreClasses(ints, t, row, tile->scale[h]);
  }
  for (int h = 0; h < kMins; ++h) {
    for (int r = 0; r < 8; ++r) ints[r] = chunks[r].min[h];
    StoreClasses(ints, t, row, tile->min[h]);
  }
}

// Chunks [first, first + count) of kTileRows rows.
template <Type kType>
void FillTile(const std::byte* const* rows, int64_t k, int64_t first, int count, ChunkTile* tile) {
  for (int row = 0; row < kTileRows; row += 8) {
    for (int t = 0; t < count; ++t) {
      Chunk chunks[8];
      for (int r = 0; r < 8; ++r) ReadChunk<kType>(rows[row + r], first + t, k, &chunks[r]);
      StoreChunks<Format<kType>::kTraits>(chunks, t, row, tile);
    }
  }
}

// The partial sums of a column, by class and row.
struct alignas(64) TileSums {
  float s[kClasses][kTileRows];
};

TRINE_INLINE TileFloats JoinClasses(const TileSums& sums) {
  TileFloats s[kClasses];
  for (int j = 0; j < kClasses; ++j) s[j] = Load<kTileRows>(sums.s[j]);
  for (int n = kClasses / 2; n > 0; n /= 2) {
    for (int j = 0; j < n; ++j) s[j] += s[j + n];
  }
  return s[0];
}

// Half h of a block of the tile by the same half of a column's block, starting from `start`.
template <FormatTraits kTraits, int kColumns>
TRINE_INLINE void DotHalves(const uint8_t (&q)[8][4 * kTileRows], int h, const int8_t* const* a,
                            TileInts* dots) {
  TileBytes w[4];
  for (int i = 0; i < 4; ++i) w[i] = Load<4 * kTileRows>(q[4 * h + i]);
  for (int c = 0; c < kColumns; ++c) Dot16<kTraits.is_signed>(w, a[c] + 16 * h, &dots[c]);
}

// I of docs/numerics.md, of block (j, t) for each column.
template <FormatTraits kTraits, int kColumns>
TRINE_INLINE void TileDots(const ChunkTile& tile, int j, int t, int offset,
                           const ActivationChunk* const* x, TileInts* dots) {
  const int8_t* a[kColumns];
  for (int c = 0; c < kColumns; ++c) a[c] = x[c][t].q + quant::kGroupValues * j;
  if constexpr (kTraits.scales == Scales::kHalf) {
    TileInts half[2][kColumns];
    for (int h = 0; h < 2; ++h) {
      for (int c = 0; c < kColumns; ++c) {
        half[h][c] = Splat<kTileRows>(-offset * x[c][t].half_sum[h][j]);
      }
      DotHalves<kTraits, kColumns>(tile.q[j][t], h, a, half[h]);
      const TileInts scale = Load<kTileRows>(tile.scale[h][j][t]);
      for (int c = 0; c < kColumns; ++c) half[h][c] = half[h][c] * scale;
    }
    for (int c = 0; c < kColumns; ++c) dots[c] = half[0][c] + half[1][c];
  } else {
    for (int c = 0; c < kColumns; ++c) dots[c] = Splat<kTileRows>(-offset * x[c][t].sum[j]);
    DotHalves<kTraits, kColumns>(tile.q[j][t], 0, a, dots);
    DotHalves<kTraits, kColumns>(tile.q[j][t], 1, a, dots);
    if constexpr (kTraits.scales == Scales::kBlock) {
      const TileInts scale = Load<kTileRows>(tile.scale[0][j][t]);
      for (int c = 0; c < kColumns; ++c) dots[c] = dots[c] * scale;
    }
  }
}

// M of docs/numerics.md, of block (j, t) for one column.
template <FormatTraits kTraits>
TRINE_INLINE TileInts TileMinimums(const ChunkTile& tile, int j, int t, const ActivationChunk& x) {
  if constexpr (kTraits.minimums == Minimums::kHalf) {
    return Load<kTileRows>(tile.min[0][j][t]) * Splat<kTileRows>(x.half_sum[0][j]) +
           Load<kTileRows>(tile.min[1][j][t]) * Splat<kTileRows>(x.half_sum[1][j]);
  } else if constexpr (kTraits.minimums == Minimums::kBlock) {
    return Load<kTileRows>(tile.min[0][j][t]) * Splat<kTileRows>(x.sum[j]);
  } else {
    return Splat<kTileRows>(-x.sum[j]);
  }
}

// The first `count` chunks of a tile by the same chunks of kColumns columns, added to their sums.
// The formats' offsets come as a number, so that formats alike in the rest share the code.
template <FormatTraits kTraits, int kColumns>
void MultiplyTile(const ChunkTile& tile, int count, int offset, const ActivationChunk* const* x,
                  TileSums* sums) {
  static_assert(kTraits.offset == 0);
  for (int j = 0; j < kClasses; ++j) {
    TileFloats acc[kColumns];
    for (int c = 0; c < kColumns; ++c) acc[c] = Load<kTileRows>(sums[c].s[j]);
    for (int t = 0; t < count; ++t) {
      TileInts dots[kColumns];
      TileDots<kTraits, kColumns>(tile, j, t, offset, x, dots);
      const TileFloats d = Load<kTileRows>(tile.d[j][t]);
      for (int c = 0; c < kColumns; ++c) {
        const TileFloats d_a = Splat<kTileRows>(x[c][t].d[j]);
        TileFloats terms = (d * d_a) * Convert<float>(dots[c]);
        if constexpr (kTraits.minimums != Minimums::kNone) {
          const TileFloats dmin = Load<kTileRows>(tile.dmin[j][t]);
          const TileInts minimums = TileMinimums<kTraits>(tile, j, t, x[c][t]);
          terms = terms - (dmin * d_a) * Convert<float>(minimums);
        }
        acc[c] += terms;
      }
    }
    for (int c = 0; c < kColumns; ++c) Store(acc[c], sums[c].s[j]);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_CHUNK_TILE_H_
