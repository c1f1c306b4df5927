// A tile: some rows of weights, unpacked once for many columns. The rows lie side by side in the
// lanes of a vector. The blocks are sorted by class (block index mod 8), so a column's accumulator
// gets all terms of a class one after the other. A long row takes several tiles; the sums of all
// classes are kept between them.

#pragma once

#include <cstdint>

#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/format_traits.h"
#include "kernels/cpu/simd/int8_dot.h"
#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

constexpr int kTileClasses = 8;
// A tile and the activations that it is multiplied with stay in a first-level cache: the weights
// take 16 KB in both cases.
constexpr int kTileChunks = kTileRows == 16 ? 4 : 8;
constexpr int kTileBlocks = kTileChunks * quant::kSuperGroups;

// The least number of columns for which filling a tile with plain weights pays.
constexpr int kTileMinColumns = kPairs ? kMinPairedRows : 4;

// Floats by class, chunk and row. The float of a row is repeated for each column of a cell. Integer
// scales are floats here: their product with a sum of products is below 2^24, and so exact.
constexpr int kTileLanes = kCellColumns * kTileRows;
using TileOfFloats = float[kTileClasses][kTileChunks][kTileLanes];

using BlockBytes = uint8_t[8][4 * kTileRows];  // eight times four weights of each row

struct alignas(64) ChunkTile {
  const uint8_t* bytes[kTileChunks];  // the first block of each chunk
  int64_t class_step;                 // bytes from one class's block to the next
  BlockBytes q[kTileClasses][kTileChunks];
  TileOfFloats d, dmin;
  TileOfFloats scale[2], min[2];
};

TRINE_INLINE void UseOwnBytes(ChunkTile* tile) {
  for (int t = 0; t < kTileChunks; ++t) tile->bytes[t] = tile->q[0][t][0];
  tile->class_step = kTileChunks * int64_t{sizeof(BlockBytes)};
}

// Stores the floats of N rows, the first of which is `row`, in the order of TileOfFloats.
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

// The partial sums of a column, or of a pair of columns, by class and row. At the end class 0 holds
// the sums of all classes.
struct alignas(64) TileSums {
  float s[kTileClasses][kTileLanes];
};

// A part of a row of blocks.
struct TilePass {
  int blocks;           // in the tile
  int64_t first_chunk;  // the first chunk of the columns
  bool first, last;     // it is the first part of the row; it is the last part
};

// Where to store the parts of a block of a tile's rows. Parts that the format lacks are not
// written.
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

// The meaning of a block's bytes.
enum class TileBytesAre {
  kStored,  // as Format::Unpack makes them, with the format's offset
  kWeights  // signed weights, without the offset
};

// The bytes that MultiplyTile wants.
#if defined(__aarch64__)
constexpr TileBytesAre kDotBytes = TileBytesAre::kWeights;
#else
constexpr TileBytesAre kDotBytes = TileBytesAre::kStored;
#endif

// Multiplies a tile with the same blocks of the columns and adds to their sums, which the last pass
// joins. `traits` are the format's.
void MultiplyTile(const ChunkTile& tile, FormatTraits traits, const TilePass& pass,
                  const Columns& columns, TileSums* sums);

// Finishes (canon, bias) the wanted rows of the tile, whose first row is `first`.
void FinishTile(const TileSums* sums, const WeightRows& weights, int64_t first, Range wanted,
                const Columns& columns);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
