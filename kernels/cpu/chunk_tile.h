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

// From here on filling a tile pays.
constexpr int kTileMinColumns = 4;

// By class, chunk and row. Integer scales are floats here: a product with a sum of products is
// below 2^24, and so exact.
using TileOfFloats = float[kTileClasses][kTileChunks][kTileRows];

struct alignas(64) ChunkTile {
  uint8_t q[kTileClasses][kTileChunks][8][4 * kTileRows];  // eight times four weights of each row
  TileOfFloats d, dmin;
  TileOfFloats scale[2], min[2];
};

// The partial sums of a column, by class and row.
struct alignas(64) TileSums {
  float s[kTileClasses][kTileRows];
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

// The first `blocks` blocks of a tile by the columns' blocks from chunk `first_chunk` on, added to
// their sums. `traits` are the format's.
void MultiplyTile(const ChunkTile& tile, FormatTraits traits, int blocks, int64_t first_chunk,
                  const Columns& columns, TileSums* sums);

// Canon and bias, of those of the tile's rows, the first of which is `first`, that are wanted.
void FinishTile(const TileSums* sums, const WeightRows& weights, int64_t first, Range wanted,
                const Columns& columns);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_CHUNK_TILE_H_
