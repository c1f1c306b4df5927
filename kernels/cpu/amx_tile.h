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
bool CanUseAmx(const Columns& columns) { return columns.in_groups && columns.count >= kAmxColumns; }

// Tiles 0 to 3: sums, a column to a row. 4 and 5: activations. 6 and 7: weights.
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
  const auto set = [&](int tile, int rows, int row_bytes) {
    config.rows[tile] = static_cast<uint8_t>(rows);
    config.row_bytes[tile] = static_cast<uint16_t>(row_bytes);
  };
  for (int tile = 0; tile < 4; ++tile) set(tile, columns, 4 * kTileRows);
  for (int tile = 4; tile < 6; ++tile) set(tile, columns, values);
  for (int tile = 6; tile < 8; ++tile) set(tile, values / 4, 4 * kTileRows);
  // GCC before 12.4 takes the instruction to read eight bytes of the struct and drops the stores to
  // the rest.
  asm volatile("" ::: "memory");
  _tile_loadconfig(&config);
}

using AmxSums = int32_t[kAmxColumns][kTileRows];

// The tiles' values of each column, from a on, by q's rows. Neighbours use different tiles, so that
// they can be under way at the same time. (GCC wants the tiles' numbers as literals.)
template <int kTurn>
TRINE_INLINE void MultiplyBlock(const int8_t* a, const uint8_t* q, AmxSums& sums) {
  constexpr std::ptrdiff_t kRowBytes = 4 * kTileRows;
#define TRINE_MULTIPLY(sum, activations, weights) \
  {                                               \
    _tile_loadd(activations, a, kColumnBytes);    \
    _tile_loadd(weights, q, kRowBytes);           \
    _tile_zero(sum);                              \
    _tile_dpbssd(sum, activations, weights);      \
    _tile_stored(sum, sums, sizeof(sums[0]));     \
  }
  if constexpr (kTurn % 4 == 0) TRINE_MULTIPLY(0, 4, 6);
  if constexpr (kTurn % 4 == 1) TRINE_MULTIPLY(1, 5, 7);
  if constexpr (kTurn % 4 == 2) TRINE_MULTIPLY(2, 4, 6);
  if constexpr (kTurn % 4 == 3) TRINE_MULTIPLY(3, 5, 7);
#undef TRINE_MULTIPLY
}

// The products of a class's blocks, by chunk: one array, or two where halves have scales of their
// own.
template <FormatTraits kTraits>
using ClassSums = AmxSums[kTileChunks][kTraits.scales == Scales::kHalf ? 2 : 1];

template <FormatTraits kTraits, int kChunk = 0>
TRINE_INLINE void MultiplyClass(const ChunkTile& tile, int j, int count, const ActivationChunk* x,
                                ClassSums<kTraits>& sums) {
  if constexpr (kChunk < kTileChunks) {
    if (kChunk >= count) return;
    const int8_t* a = x[kChunk * kAmxColumns].q + quant::kGroupValues * j;
    const auto& q = tile.q[j][kChunk];
    if constexpr (kTraits.scales == Scales::kHalf) {
      MultiplyBlock<2 * kChunk>(a, q[0], sums[kChunk][0]);
      MultiplyBlock<2 * kChunk + 1>(a + 16, q[4], sums[kChunk][1]);
    } else {
      MultiplyBlock<kChunk>(a, q[0], sums[kChunk][0]);
    }
    MultiplyClass<kTraits, kChunk + 1>(tile, j, count, x, sums);
  }
}

// The terms of block (j, t), added to the columns' accumulators.
template <FormatTraits kTraits>
TRINE_INLINE void AddBlock(const ChunkTile& tile, int j, int t, const ActivationChunk* x,
                           const AmxSums* sums, SliceFloats (&acc)[kAmxColumns]) {
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
    acc[c] += TileTerms<kTraits>(tile, j, t, 0, FactorsOf(x[t * kAmxColumns + c], j), scaled);
  }
}

// A group of columns from x on. Where it has fewer than 16, there is room for all, and for as many
// sums: what is computed there is nobody's.
//
// A product takes long to come out of the tiles, so those of the next class are under way while the
// ones of this class are scaled and added.
template <FormatTraits kTraits>
void MultiplyAmxGroup(const ChunkTile& tile, int blocks, const ActivationChunk* x, TileSums* sums) {
  alignas(64) ClassSums<kTraits> products[2];
  MultiplyClass<kTraits>(tile, 0, BlocksOfClass(blocks, 0), x, products[0]);
  for (int j = 0; j < kTileClasses; ++j) {
    if (j + 1 < kTileClasses) {
      MultiplyClass<kTraits>(tile, j + 1, BlocksOfClass(blocks, j + 1), x, products[(j + 1) % 2]);
    }
    SliceFloats acc[kAmxColumns];
#pragma GCC unroll 16
    for (int c = 0; c < kAmxColumns; ++c) acc[c] = Load<kTileRows>(sums[c].s[j]);
    for (int t = 0; t < BlocksOfClass(blocks, j); ++t) {
      AddBlock<kTraits>(tile, j, t, x, products[j % 2][t], acc);
    }
#pragma GCC unroll 16
    for (int c = 0; c < kAmxColumns; ++c) Store(acc[c], sums[c].s[j]);
  }
}

template <FormatTraits kTraits>
void MultiplyByAmx(const ChunkTile& tile, int blocks, const ActivationChunk* const* x,
                   const Columns& columns, TileSums* sums) {
  constexpr int kValues = kTraits.scales == Scales::kHalf ? 16 : 32;
  ConfigureTiles(kAmxColumns, kValues);
  for (int c = 0; c < columns.count; c += kAmxColumns) {
    if (columns.count - c < kAmxColumns) ConfigureTiles(columns.count - c, kValues);
    MultiplyAmxGroup<kTraits>(tile, blocks, x[c], sums + c);
  }
  _tile_release();
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // __AMX_INT8__

#endif  // TRINE_KERNELS_CPU_AMX_TILE_H_
