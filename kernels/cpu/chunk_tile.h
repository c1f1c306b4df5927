// A tile: some rows unpacked once for many columns. The rows lie side by side in the lanes of a
// vector, and the blocks are sorted by class (block index mod 8), so that one accumulator per
// column sees all terms of its class in a row. A long row takes several tiles; the sums of all
// classes are kept between them.

#ifndef TRINE_KERNELS_CPU_CHUNK_TILE_H_
#define TRINE_KERNELS_CPU_CHUNK_TILE_H_

#include <cstdint>

#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/format_traits.h"
#include "kernels/cpu/int8_dot.h"
#include "kernels/cpu/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

constexpr int kTileClasses = 8;
// A tile and the activations it meets stay in a first-level cache: 16 KB of weights either way.
constexpr int kTileChunks = kTileRows == 16 ? 4 : 8;
constexpr int kTileBlocks = kTileChunks * quant::kSuperGroups;

// From here on filling a tile with plain weights pays.
constexpr int kTileMinColumns = kPairs ? kMinPairedRows : 4;

// By class, chunk and row, each row's as often as it is in a cell. Integer scales are floats here:
// a product with a sum of products is below 2^24, and so exact.
constexpr int kTileLanes = kCellColumns * kTileRows;
using TileOfFloats = float[kTileClasses][kTileChunks][kTileLanes];

using BlockBytes = uint8_t[8][4 * kTileRows];  // eight times four weights of each row

struct alignas(64) ChunkTile {
  const uint8_t* bytes[kTileChunks];  // where the chunks' first blocks are
  int64_t class_step;                 // bytes from there to the next class's
  BlockBytes q[kTileClasses][kTileChunks];
  TileOfFloats d, dmin;
  TileOfFloats scale[2], min[2];
};

TRINE_INLINE void UseOwnBytes(ChunkTile* tile) {
  for (int t = 0; t < kTileChunks; ++t) tile->bytes[t] = tile->q[0][t][0];
  tile->class_step = kTileChunks * int64_t{sizeof(BlockBytes)};
}

// Of some rows, the first of which is `row`, as a tile has them.
template <int N>
TRINE_INLINE void StoreRows(F32<N> x, int row, float* to) {
  if constexpr (!kPairs) {
    Store(x, to + row);
  } else if constexpr (N > 4) {
    StoreRows(Low(x), row, to);
    StoreRows(High(x), row + N / 2, to);
  } else {
    Store(F32<N>{__builtin_shufflevector(x.v, x.v, 0, 0, 1, 1)}, to + 2 * row);
    Store(F32<N>{__builtin_shufflevector(x.v, x.v, 2, 2, 3, 3)}, to + 2 * row + 4);
  }
}

// The partial sums of a column, or of a pair of columns, by class and row. At the end those of
// class 0 are the sums of all.
struct alignas(64) TileSums {
  float s[kTileClasses][kTileLanes];
};

// A part of a row of blocks.
struct TilePass {
  int blocks;           // of the tile
  int64_t first_chunk;  // of the columns
  bool first, last;     // of the row's
};

// A block of a tile's rows, wherever its parts lie. What the format has not got is left alone.
struct BlockParts {
  uint8_t (*q)[4 * kTileRows];
  float *d, *dmin;
  float *scale[2], *min[2];
};

TRINE_INLINE BlockParts PartsOf(ChunkTile* tile, int j, int t) {
  return {tile->q[j][t],
          tile->d[j][t],
          tile->dmin[j][t],
          {tile->scale[0][j][t], tile->scale[1][j][t]},
          {tile->min[0][j][t], tile->min[1][j][t]}};
}

// What the bytes of a block are.
enum class TileBytesAre {
  kStored,  // as Format::Unpack has them, the offset to be taken back
  kWeights  // signed, the offset taken off
};

// What MultiplyTile wants.
#if defined(__aarch64__)
constexpr TileBytesAre kDotBytes = TileBytesAre::kWeights;
#else
constexpr TileBytesAre kDotBytes = TileBytesAre::kStored;
#endif

// A tile by the same blocks of the columns, added to their sums, which the last pass joins.
// `traits` are the format's.
void MultiplyTile(const ChunkTile& tile, FormatTraits traits, const TilePass& pass,
                  const Columns& columns, TileSums* sums);

// Canon and bias, of those of the tile's rows, the first of which is `first`, that are wanted.
void FinishTile(const TileSums* sums, const WeightRows& weights, int64_t first, Range wanted,
                const Columns& columns);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_CHUNK_TILE_H_
