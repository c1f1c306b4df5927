// What the kernels of gemv.h share: their arguments, where a column's operands lie, how a result
// ends. A group of 32 lanes makes some rows of a result, for some columns at a time.
#ifndef TRINE_KERNELS_HIP_GEMV_FRAME_H_
#define TRINE_KERNELS_HIP_GEMV_FRAME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/hip/gemv.h"
#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/product.h"
#include "kernels/hip/quantized.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

inline constexpr int kGemvThreads = 128;
inline constexpr int kGemvSlots = kGemvThreads / kLanes;

// One of the products of a launch.
struct GemvPart {
  const std::byte* weights = nullptr;
  int64_t row_stride = 0;
  const float* bias = nullptr;
  std::byte* y = nullptr;
  int64_t y_strides[2] = {0, 0};  // of dimensions 1 and 2, in bytes
  uint32_t n = 0;
  uint32_t first_block = 0;  // of the grid, along x
};

struct GemvArgs {
  GemvPart parts[kMaxGemvProducts];
  uint32_t count = 1;  // of the parts
  // Of a single product: what is added to its result. In bytes, of dimensions 1 and 2.
  const std::byte* addend = nullptr;
  int64_t addend_strides[2] = {0, 0};
  uint32_t k = 0, columns = 0;
  QuantizedColumns q;                     // quantised weights
  Rows x;                                 // float weights
  uint32_t x_columns = 1, y_columns = 1;  // dimension 1 of x and of y
  // Of experts; y_columns is then how many a token uses.
  int64_t expert_stride = 0, bias_stride = 0;  // from expert to expert, in bytes
  const int32_t* ids = nullptr;
  int64_t ids_stride = 0;  // from token to token, in bytes
  uint32_t experts = 0;
  bool constant = false;  // the weights, so that they can be read before anything is awaited
  // Not read by kernels: rows for every multiprocessor, and so many of them that what counts is how
  // few instructions a row takes; or so little altogether that all of it can be under way at once.
  bool many_rows = false, most_rows = false, is_little = false;
};

#ifdef TRINE_DEVICE

// Which product a block is for.
TRINE_DEVICE GemvPart PartOf(const GemvArgs& args) {
  uint32_t part = 0;
  TRINE_UNROLL
  for (uint32_t i = 1; i < kMaxGemvProducts; ++i) {
    part += i < args.count && BlockX() >= args.parts[i].first_block ? 1u : 0u;
  }
  const auto pick = [&](const auto& member) {
    return PickArgument<kMaxGemvProducts>(part, [&](uint32_t i) { return member(args.parts[i]); });
  };
  GemvPart picked;
  picked.weights = pick([](const GemvPart& p) { return p.weights; });
  picked.row_stride = pick([](const GemvPart& p) { return p.row_stride; });
  picked.bias = pick([](const GemvPart& p) { return p.bias; });
  picked.y = pick([](const GemvPart& p) { return p.y; });
  picked.y_strides[0] = pick([](const GemvPart& p) { return p.y_strides[0]; });
  picked.y_strides[1] = pick([](const GemvPart& p) { return p.y_strides[1]; });
  picked.n = pick([](const GemvPart& p) { return p.n; });
  picked.first_block = pick([](const GemvPart& p) { return p.first_block; });
  return picked;
}

// The weights and the bias of a column.
struct GemvPlace {
  const std::byte* weights;
  const float* bias;
  bool none;  // an id that is no expert: the result is zero
};

TRINE_DEVICE GemvPlace PlaceOf(const GemvArgs& args, const GemvPart& part, uint32_t column) {
  if (args.ids == nullptr) return {part.weights, part.bias, false};
  const auto* ids = reinterpret_cast<const int32_t*>(reinterpret_cast<const std::byte*>(args.ids) +
                                                     column / args.y_columns * args.ids_stride);
  const auto expert = static_cast<uint32_t>(ids[column % args.y_columns]);  // a negative is large
  if (expert >= args.experts) return {part.weights, part.bias, true};
  const auto* bias = reinterpret_cast<const std::byte*>(part.bias);
  return {part.weights + expert * args.expert_stride,
          part.bias == nullptr ? nullptr
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

// What a sum of products becomes.
TRINE_DEVICE float Result(const float* bias, uint32_t row, float dot) {
  const float result = Canon(dot);
  return bias != nullptr ? Canon(result + bias[row]) : result;
}

TRINE_DEVICE void Store(const GemvArgs& args, const GemvPart& part, const GemvPlace& place,
                        uint32_t row, uint32_t column, float dot) {
  const uint32_t i1 = column % args.y_columns, i2 = column / args.y_columns;
  auto* y = reinterpret_cast<float*>(part.y + i1 * part.y_strides[0] + i2 * part.y_strides[1]);
  float value = place.none ? 0.0f : Result(place.bias, row, dot);
  if (args.addend != nullptr) {
    const auto* addend = reinterpret_cast<const float*>(args.addend + i1 * args.addend_strides[0] +
                                                        i2 * args.addend_strides[1]);
    value = Canon(value + addend[row]);
  }
  y[row] = value;
}

#endif

// Blocks that each make kGemvSlots * rows rows of a product: those of the first one, then those of
// the next.
inline Dim GemvGrid(uint32_t rows, uint32_t columns, GemvArgs* args) {
  const uint32_t a_block = kGemvSlots * rows;
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < args->count; ++i) {
    args->parts[i].first_block = blocks;
    blocks += (args->parts[i].n + a_block - 1) / a_block;
  }
  return {blocks, std::min((args->columns + columns - 1) / columns, kMaxGridYZ), 1};
}

// Columns that a launch takes at a time: 1, 2, 4 or 8.
inline int GemvColumns(const GemvArgs& args) {
  if (args.ids != nullptr || args.columns == 1) return 1;
  return args.columns == 2 ? 2 : args.columns <= 4 ? 4 : 8;
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMV_FRAME_H_
