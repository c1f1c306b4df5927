// A tile's products by AMX: 16 rows by 16 columns by one block of 32 values (or half of one, where
// the halves have scales of their own) to an instruction. Part of chunk_tile.cc.

#ifndef TRINE_KERNELS_CPU_AMX_TILE_H_
#define TRINE_KERNELS_CPU_AMX_TILE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/tile_terms.h"

#if defined(__AMX_INT8__)

#include <immintrin.h>

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr int kAmxColumns = 16;
static_assert(kAmxColumns == kInterleavedRows);
// From a column to the next of its group.
constexpr std::ptrdiff_t kColumnBytes = sizeof(ActivationChunk);

// Fewer columns are left to the vector unit, as are columns that lie anywhere (experts).
bool CanUseAmx(const Columns& columns) {
  if (columns.count < kAmxColumns || columns.step != kAmxColumns) return false;
  for (int c = 0; c < columns.count; ++c) {
    const int first = c / kAmxColumns * kAmxColumns;
    if (columns.chunks[c] != columns.chunks[first] + (c - first)) return false;
  }
  return true;
}

// Tiles 0 and 1: sums, a column to a row. 2: activations. 3: weights.
struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

TRINE_INLINE void ConfigureTiles(int columns, int values) {
  TileConfig config = {};
  config.palette = 1;
  for (int sums = 0; sums < 2; ++sums) {
    config.rows[sums] = static_cast<uint8_t>(columns);
    config.row_bytes[sums] = 4 * kTileRows;
  }
  config.rows[2] = static_cast<uint8_t>(columns);
  config.row_bytes[2] = static_cast<uint16_t>(values);
  config.rows[3] = static_cast<uint8_t>(values / 4);
  config.row_bytes[3] = 4 * kTileRows;
  // GCC before 12.4 takes the instruction to read eight bytes of the struct and drops the stores to
  // the rest.
  asm volatile("" ::: "memory");
  _tile_loadconfig(&config);
}

using AmxSums = int32_t[kAmxColumns][kTileRows];

// The tiles' values of each column, from a on, by q's rows. (GCC wants the tiles' numbers as literals.)
template <int kSums>
TRINE_INLINE void MultiplyBlock(const int8_t* a, const uint8_t* q, AmxSums& sums) {
  _tile_loadd(2, a, kColumnBytes);
  _tile_loadd(3, q, 4 * kTileRows);
  if constexpr (kSums == 0) {
    _tile_zero(0);
    _tile_dpbssd(0, 2, 3);
    _tile_stored(0, sums, sizeof(sums[0]));
  } else {
    _tile_zero(1);
    _tile_dpbssd(1, 2, 3);
    _tile_stored(1, sums, sizeof(sums[0]));
  }
}

// The sums of block (j, t): one array, or two where halves have scales of their own.
template <FormatTraits kTraits>
TRINE_INLINE void MultiplyBlocks(const ChunkTile& tile, int j, int t, const ActivationChunk* x,
                                 AmxSums (&sums)[2]) {
  const int8_t* a = x[t * kAmxColumns].q + quant::kGroupValues * j;
  if constexpr (kTraits.scales == Scales::kHalf) {
    MultiplyBlock<0>(a, tile.q[j][t][0], sums[0]);
    MultiplyBlock<1>(a + 16, tile.q[j][t][4], sums[1]);
  } else if (t % 2 == 0) {  // two tiles in turn: one is read while the next is made
    MultiplyBlock<0>(a, tile.q[j][t][0], sums[0]);
  } else {
    MultiplyBlock<1>(a, tile.q[j][t][0], sums[0]);
  }
}

// The terms of block (j, t), added to the columns' accumulators.
template <FormatTraits kTraits>
TRINE_INLINE void AddBlock(const ChunkTile& tile, int j, int t, const ActivationChunk* x,
                           const AmxSums (&sums)[2], SliceFloats (&acc)[kAmxColumns]) {
#pragma GCC unroll 16
  for (int c = 0; c < kAmxColumns; ++c) {
    SliceFloats scaled = Convert<float>(Load<kTileRows>(sums[0][c]));
    if constexpr (kTraits.scales != Scales::kNone) {
      scaled = scaled * Load<kTileRows>(tile.scale[0][j][t]);
    }
    if constexpr (kTraits.scales == Scales::kHalf) {
      const SliceFloats last = Convert<float>(Load<kTileRows>(sums[1][c]));
      scaled += last * Load<kTileRows>(tile.scale[1][j][t]);
    }
    acc[c] += TileTerms<kTraits>(tile, j, t, 0, x[t * kAmxColumns + c], scaled);
  }
}

// A group of columns from x on. Where it has fewer than 16, there is room for all, and for as many
// sums: what is computed there is nobody's.
template <FormatTraits kTraits>
void MultiplyAmxGroup(const ChunkTile& tile, int count, const ActivationChunk* x, TileSums* sums) {
  alignas(64) AmxSums products[2][2];
  for (int j = 0; j < kTileClasses; ++j) {
    SliceFloats acc[kAmxColumns];
#pragma GCC unroll 16
    for (int c = 0; c < kAmxColumns; ++c) acc[c] = Load<kTileRows>(sums[c].s[j]);
    MultiplyBlocks<kTraits>(tile, j, 0, x, products[0]);
    for (int t = 0; t < count; ++t) {
      // The next block's products are under way while this one's are used.
      if (t + 1 < count) {
        MultiplyBlocks<kTraits>(tile, j, t + 1, x, products[(t + 1) % 2]);
      }
      AddBlock<kTraits>(tile, j, t, x, products[t % 2], acc);
    }
#pragma GCC unroll 16
    for (int c = 0; c < kAmxColumns; ++c) Store(acc[c], sums[c].s[j]);
  }
}

template <FormatTraits kTraits>
void MultiplyByAmx(const ChunkTile& tile, int count, const ActivationChunk* const* x,
                   const Columns& columns, TileSums* sums) {
  constexpr int kValues = kTraits.scales == Scales::kHalf ? 16 : 32;
  ConfigureTiles(kAmxColumns, kValues);
  for (int c = 0; c < columns.count; c += kAmxColumns) {
    if (columns.count - c < kAmxColumns) ConfigureTiles(columns.count - c, kValues);
    MultiplyAmxGroup<kTraits>(tile, count, x[c], sums + c);
  }
  _tile_release();
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // __AMX_INT8__

#endif  // TRINE_KERNELS_CPU_AMX_TILE_H_
