// What the kernels of gemv.h share: their arguments, where a column's operands lie, how a result
// ends. A group of 32 lanes makes some rows of the result, for some columns at a time.
#ifndef TRINE_KERNELS_HIP_GEMV_FRAME_H_
#define TRINE_KERNELS_HIP_GEMV_FRAME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/product.h"
#include "kernels/hip/quantized.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

inline constexpr int kGemvThreads = 128;
inline constexpr int kGemvSlots = kGemvThreads / kLanes;

struct GemvArgs {
  const std::byte* weights = nullptr;
  int64_t row_stride = 0, expert_stride = 0;
  uint32_t k = 0, n = 0, columns = 0;
  QuantizedColumns q;                     // quantised weights
  Rows x;                                 // float weights
  uint32_t x_columns = 1, y_columns = 1;  // dimension 1 of x and of y
  const float* bias = nullptr;
  int64_t bias_stride = 0;  // from expert to expert, in bytes
  Rows y;
  // Of experts; y_columns is then how many a token uses.
  const int32_t* ids = nullptr;
  int64_t ids_stride = 0;  // from token to token, in bytes
  uint32_t experts = 0;
  bool many_rows = false;  // enough for every multiprocessor: not read by kernels
};

#ifdef TRINE_DEVICE

// The weights and the bias of a column.
struct GemvPlace {
  const std::byte* weights;
  const float* bias;
  bool none;  // an id that is no expert: the result is zero
};

TRINE_DEVICE GemvPlace PlaceOf(const GemvArgs& args, uint32_t column) {
  if (args.ids == nullptr) return {args.weights, args.bias, false};
  const auto* ids = reinterpret_cast<const int32_t*>(reinterpret_cast<const std::byte*>(args.ids) +
                                                     column / args.y_columns * args.ids_stride);
  const auto expert = static_cast<uint32_t>(ids[column % args.y_columns]);  // a negative is large
  if (expert >= args.experts) return {args.weights, args.bias, true};
  const auto* bias = reinterpret_cast<const std::byte*>(args.bias);
  return {args.weights + expert * args.expert_stride,
          args.bias == nullptr ? nullptr
                               : reinterpret_cast<const float*>(bias + expert * args.bias_stride),
          false};
}

// Of x, whose tokens may have one column for all their experts.
TRINE_DEVICE uint32_t ColumnOfX(const GemvArgs& args, uint32_t column) {
  return args.ids != nullptr && args.x_columns == 1 ? column / args.y_columns : column;
}

TRINE_DEVICE const float* RowOfX(const GemvArgs& args, uint32_t column) {
  const uint32_t at = ColumnOfX(args, column);
  return reinterpret_cast<const float*>(args.x.data + at % args.x_columns * args.x.strides[0] +
                                        at / args.x_columns * args.x.strides[1]);
}

TRINE_DEVICE void Store(const GemvArgs& args, const GemvPlace& place, uint32_t row, uint32_t column,
                        float dot) {
  float result = Canon(dot);
  if (place.bias != nullptr) result = Canon(result + place.bias[row]);
  auto* y = reinterpret_cast<float*>(args.y.data + column % args.y_columns * args.y.strides[0] +
                                     column / args.y_columns * args.y.strides[1]);
  y[row] = place.none ? 0.0f : result;
}

#endif

// Blocks that each make kGemvSlots * rows rows.
inline Dim GemvGrid(const GemvArgs& args, uint32_t rows, uint32_t columns) {
  const uint32_t a_block = kGemvSlots * rows;
  return {(args.n + a_block - 1) / a_block,
          std::min((args.columns + columns - 1) / columns, kMaxGridYZ), 1};
}

// Columns that a launch takes at a time: 1, 2, 4 or 8.
inline int GemvColumns(const GemvArgs& args) {
  if (args.ids != nullptr || args.columns == 1) return 1;
  return args.columns == 2 ? 2 : args.columns <= 4 ? 4 : 8;
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMV_FRAME_H_
