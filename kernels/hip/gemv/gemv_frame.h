// Shared by the kernels of gemv.h: their arguments, the places of a column's operands, the last
// step of a result. A group of 32 lanes computes some rows of a result, for some columns at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/weights/product.h"
#include "kernels/hip/weights/quantized.h"
#include "kernels/hip/weights/tensor.h"
#include "kernels/quant/block_types.h"

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
  uint32_t first_block = 0;  // the product's first block in the grid, along x
};

struct GemvArgs {
  GemvPart parts[kMaxGemvProducts];
  uint32_t count = 1;  // number of parts
  // Added to the result of a single product, or null. Strides of dimensions 1 and 2, in bytes.
  const std::byte* addend = nullptr;
  int64_t addend_strides[2] = {0, 0};
  uint32_t k = 0, columns = 0;
  QuantizedColumns q;                     // for quantised weights
  Rows x;                                 // for float weights
  uint32_t x_columns = 1, y_columns = 1;  // dimension 1 of x and of y
  // For experts; y_columns is then the number of experts that a token uses.
  int64_t expert_stride = 0, bias_stride = 0;  // from expert to expert, in bytes
  const int32_t* ids = nullptr;
  int64_t ids_stride = 0;  // from token to token, in bytes
  uint32_t experts = 0;
  bool constant = false;  // no kernel writes the weights: they can be read before AwaitEarlier
  // The host chooses a kernel by these flags; kernels do not read them. many_rows: every
  // multiprocessor gets 32 rows or more. most_rows: it gets 512 or more, so the number of
  // instructions for a row decides the time. is_little: the weights are so few that all of them can
  // be loaded at the same time.
  bool many_rows = false, most_rows = false, is_little = false;
  quant::Type types[kMaxGemvProducts] = {};  // of weights; read if they differ
};

#ifdef TRINE_DEVICE

// Returns the index of the product that this block works on.
TRINE_DEVICE uint32_t PartIndexOf(const GemvArgs& args) {
  uint32_t part = 0;
  TRINE_UNROLL
  for (uint32_t i = 1; i < kMaxGemvProducts; ++i) {
    part += i < args.count && BlockX() >= args.parts[i].first_block ? 1u : 0u;
  }
  return part;
}

// Returns the product that this block works on.
TRINE_DEVICE GemvPart PartOf(const GemvArgs& args) {
  const uint32_t part = PartIndexOf(args);
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
  bool none;  // the id is no expert: the result is zero
};

TRINE_DEVICE GemvPlace PlaceOf(const GemvArgs& args, const GemvPart& part, uint32_t column) {
  if (args.ids == nullptr) return {part.weights, part.bias, false};
  const auto* ids = reinterpret_cast<const int32_t*>(reinterpret_cast<const std::byte*>(args.ids) +
                                                     column / args.y_columns * args.ids_stride);
  // Negative ids become large.
  const auto expert = static_cast<uint32_t>(ids[column % args.y_columns]);
  if (expert >= args.experts) return {part.weights, part.bias, true};
  const auto* bias = reinterpret_cast<const std::byte*>(part.bias);
  return {part.weights + expert * args.expert_stride,
          part.bias == nullptr ? nullptr
                               : reinterpret_cast<const float*>(bias + expert * args.bias_stride),
          false};
}

// Returns the column of x. A token may have one column of x for all its experts.
TRINE_DEVICE uint32_t ColumnOfX(const GemvArgs& args, uint32_t column) {
  return args.ids != nullptr && args.x_columns == 1 ? column / args.y_columns : column;
}

TRINE_DEVICE const float* RowOfX(const GemvArgs& args, uint32_t column) {
  const uint32_t at = ColumnOfX(args, column);
  return reinterpret_cast<const float*>(args.x.data + at % args.x_columns * args.x.strides[0] +
                                        at / args.x_columns * args.x.strides[1]);
}

// Turns a sum of products into a result: canon, then the bias and canon again.
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

// Gives each product its blocks, one product after the other, and returns the grid. A block makes
// kGemvSlots * rows rows of a product.
inline Dim GemvGrid(uint32_t rows, uint32_t columns, GemvArgs* args) {
  const uint32_t a_block = kGemvSlots * rows;
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < args->count; ++i) {
    args->parts[i].first_block = blocks;
    blocks += (args->parts[i].n + a_block - 1) / a_block;
  }
  return {blocks, std::min((args->columns + columns - 1) / columns, kMaxGridYZ), 1};
}

// Returns how many columns a launch takes at a time: 1, 2, 4 or 8.
inline int GemvColumns(const GemvArgs& args) {
  if (args.ids != nullptr || args.columns == 1) return 1;
  return args.columns == 2 ? 2 : args.columns <= 4 ? 4 : 8;
}

// Returns the arguments for the launch of these products.
GemvArgs GemvArgsOf(std::span<const Product> products, const DeviceShape& shape);

// The following return the launch for one kind of weights. Each is in its own file, because device
// compilers take long.
//
// For weights in the file's layout, with blocks of 32 and of 256 values. `words`: all blocks begin
// at multiples of four bytes.
Launch SmallBlockGemv(quant::Type type, bool words, const GemvArgs& args);
Launch SuperBlockGemv(quant::Type type, bool words, const GemvArgs& args);
Launch PackedGemv(quant::Type type, const GemvArgs& args);
// For packed weights of several types, and one column.
Launch MixedGemv(const GemvArgs& args);
// For packed weights of few long rows, and one column: if IsForSplitGemv.
bool IsForSplitGemv(const GemvArgs& args);
Launch SplitGemv(quant::Type type, const GemvArgs& args);
// For float weights in the file's layout. `wide`: rows begin at multiples of four values.
Launch FloatGemv(quant::Type type, bool wide, const GemvArgs& args);
Launch PackedF16Gemv(const GemvArgs& args);

}  // namespace trine::hip
