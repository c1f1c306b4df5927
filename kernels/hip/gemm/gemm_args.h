// Shared by the kernels of products with many columns: their arguments, the columns of a tile, and
// the last step of a result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/platform.h"
#include "kernels/hip/weights/quantized.h"

namespace trine::hip {

struct GemmArgs {
  const std::byte* w;
  int64_t w_stride, w_expert;  // bytes from row to row, from expert to expert
  QuantizedColumns q;          // for quantised weights
  const std::byte* x;          // for float weights
  int64_t x_stride[2];         // of dimensions 1 and 2; 0 if dimension 1 is repeated
  int64_t q_stride[2];         // these strides, in columns of q
  const std::byte* bias;       // or null
  int64_t bias_expert;
  std::byte* y;
  int64_t y_stride[2];
  // Only for experts, else null. First the number of tiles and three words of padding; then for
  // each tile its expert, the index of its columns in the lists, their number, and padding; then
  // the columns by expert. Columns whose id is no expert are listed as those of one more expert,
  // after the others.
  const uint32_t* lists;
  uint32_t k, n, columns;
  uint32_t slots;  // dimension 1 of y: column = token * slots + slot
  uint32_t experts;
};

// The index of the first tile in the lists, and the size of a tile, in words. The columns come
// after max_tiles tiles.
inline constexpr uint32_t kListTiles = 4;
inline constexpr uint32_t kListTileWords = 4;

#ifdef TRINE_DEVICE
// The columns of a tile: `count` of them, all with the same weights.
struct TileColumns {
  const uint32_t* list;  // null: the columns are first, first + 1, ..
  uint32_t first, count;
  uint32_t expert;
  bool zeros;  // the ids are no expert: the results are zeros
};

// Finds the columns of a tile. Returns false if there is no such tile.
TRINE_DEVICE bool FindColumns(const GemmArgs& args, uint32_t tile, uint32_t tile_columns,
                              TileColumns* found) {
  if (args.lists != nullptr) {
    if (tile >= args.lists[0]) return false;
    const uint32_t* at = args.lists + kListTiles + kListTileWords * tile;
    *found = {args.lists + at[1], 0, at[2], at[0], at[0] >= args.experts};
    return true;
  }
  const uint32_t first = tile * tile_columns;
  if (first >= args.columns) return false;
  const uint32_t left = args.columns - first;
  *found = {nullptr, first, left < tile_columns ? left : tile_columns, 0, false};
  return true;
}

// Returns column i of a tile as a column of y; the last column if i is beyond it.
TRINE_DEVICE uint32_t ColumnOf(const TileColumns& tile, uint32_t i) {
  if (i >= tile.count) i = tile.count - 1;
  return tile.list != nullptr ? tile.list[i] : tile.first + i;
}

TRINE_DEVICE int64_t OffsetOf(const int64_t (&strides)[2], uint32_t column, uint32_t slots) {
  return column % slots * strides[0] + column / slots * strides[1];
}

TRINE_DEVICE float* ColumnOfY(const GemmArgs& args, const TileColumns& tile, uint32_t i) {
  return reinterpret_cast<float*>(args.y + OffsetOf(args.y_stride, ColumnOf(tile, i), args.slots));
}

TRINE_DEVICE const std::byte* WeightRow(const GemmArgs& args, const TileColumns& tile,
                                        uint32_t row) {
  if (row >= args.n) row = args.n - 1;
  return args.w + tile.expert * args.w_expert + row * args.w_stride;
}

// Turns a dot product into a result: canon, then the bias and canon again.
TRINE_DEVICE float Finish(const GemmArgs& args, const TileColumns& tile, uint32_t row, float dot) {
  if (tile.zeros) return 0.0f;
  const float result = Canon(dot);
  if (args.bias == nullptr) return result;
  const auto* bias = reinterpret_cast<const float*>(args.bias + tile.expert * args.bias_expert);
  return Canon(result + bias[row]);
}
#endif

}  // namespace trine::hip
