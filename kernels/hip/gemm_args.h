// What the kernels of products with many columns share: arguments, the columns of a tile, the end
// of a result.
#ifndef TRINE_KERNELS_HIP_GEMM_ARGS_H_
#define TRINE_KERNELS_HIP_GEMM_ARGS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/platform.h"
#include "kernels/hip/quantized.h"

namespace trine::hip {

struct GemmArgs {
  const std::byte* w;
  int64_t w_stride, w_expert;  // bytes from row to row, from expert to expert
  QuantizedColumns q;          // of quantised weights
  const std::byte* x;          // of others
  int64_t x_stride[2];         // of dimensions 1 and 2; 0 where dimension 1 is repeated
  int64_t q_stride[2];         // the same in columns of q
  const std::byte* bias;       // or null
  int64_t bias_expert;
  std::byte* y;
  int64_t y_stride[2];
  // Of experts, else null: the number of tiles and three words of padding; for each tile (expert,
  // where its columns are listed, how many, padding); then the columns by expert. Ids that are no
  // expert count as one more, behind the others.
  const uint32_t* lists;
  uint32_t k, n, columns;
  uint32_t slots;  // dimension 1 of y: column = token * slots + slot
  uint32_t experts;
};

// Where lists have their tiles; the columns come behind max_tiles of them.
inline constexpr uint32_t kListTiles = 4;
inline constexpr uint32_t kListTileWords = 4;

#ifdef TRINE_DEVICE
// The columns of a tile: `count` of them, all with the same weights.
struct TileColumns {
  const uint32_t* list;  // or null: those from `first` on
  uint32_t first, count;
  uint32_t expert;
  bool zeros;  // no expert: the results are zeros
};

// False: there is no such tile.
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

// Column i of a tile, as one of y; beyond the last, the last.
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

// The result of a dot product.
TRINE_DEVICE float Finish(const GemmArgs& args, const TileColumns& tile, uint32_t row, float dot) {
  if (tile.zeros) return 0.0f;
  const float result = Canon(dot);
  if (args.bias == nullptr) return result;
  const auto* bias = reinterpret_cast<const float*>(args.bias + tile.expert * args.bias_expert);
  return Canon(result + bias[row]);
}
#endif

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMM_ARGS_H_
