// Makes the runs of matmul and moe_matmul, and the runs that prepare them: one quantises the
// activations, one lists the columns of each expert.
//
//   Product p = {w, packed, x, bias, y};
//   if (std::string why = WhyNotProduct(p); !why.empty()) ...
//   if (quant::IsQuantized(p.w.type)) Add(QuantizeRun(p));
//   if (NeedsLists(p, tuning)) Add(ListColumnsRun(p, tuning));
//   Add(ProductRun(p, tuning));
//
// QuantizeRun and ListColumnsRun write ScratchBytes of scratch, beginning at
// Product::scratch_offset. Products of the same x may share the result of one QuantizeRun; products
// of the same ids may share the result of one ListColumnsRun. Bindings must be whole words of 4
// bytes: if weights end within a word (MXFP4), the binding includes the rest of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/vulkan/runs/dispatch.h"

namespace trine::vulkan {

// A matmul or moe_matmul: its operands, and for moe_matmul its experts.
struct Product {
  TensorView w;         // [k, n]; with experts [k, n, experts in the binding]
  bool packed = false;  // w has the layout of packed_rows.h and the strides of packed rows
  TensorView x;         // [k, m]; with experts [k, used or 1, m]
  std::optional<TensorView> bias;  // [n]; with experts [n, all experts]
  TensorView y;                    // [n, m]; with experts [n, used, m]

  // For moe_matmul. Weights that do not fit in one binding need several products, each with some
  // experts, beginning with first_expert. The product with first_expert 0 writes zeros for ids that
  // are no expert.
  std::optional<TensorView> ids;  // i32 [used, m]
  int64_t experts = 0;            // the number of all experts
  int64_t first_expert = 0;

  uint64_t scratch_offset = 0;  // in bytes, a multiple of 16
};

// How products use the device. Changes no result.
struct ProductTuning {
  bool int_dot = false;  // use the shaders with OpSDot

  // For few columns (GEMV). A workgroup is divided into slots, which compute rows.
  uint32_t gemv_workgroup = 64;  // a multiple of 32
  uint32_t gemv_subgroup = 0;    // the required subgroup size; 0: the driver's choice
  uint32_t gemv_lanes = 8;       // the fewest lanes for a row of a quantised type: 8, 16 or 32
  uint32_t gemv_rows = 2;        // the most rows that a slot computes at a time; a power of two
  uint32_t gemv_blocks = 1;      // how many blocks a lane reads at a time
  uint32_t gemv_columns = 8;     // columns at a time; a product with more columns is a GEMM
  // The number of invocations that keeps the device busy. If a matrix has few rows, a slot computes
  // fewer rows at a time and uses more lanes for each.
  uint32_t gemv_fill = 16384;

  // For many columns (GEMM): the rows and columns that an invocation computes. A tile of a
  // quantised type is 8 times the rows by 4 times the columns.
  uint32_t gemm_rows = 4;
  uint32_t gemm_columns = 8;
};

// Return the most shared memory of any workgroup under a tuning. Types with fewer scales use less.
uint64_t GemvSharedBytes(const ProductTuning& tuning);
uint64_t GemmSharedBytes(const ProductTuning& tuning);

// Returns why these shaders can't multiply these views, or "" if they can.
std::string WhyNotProduct(const Product& product);

// Returns the size of `columns` columns of k quantised activations, in bytes.
uint64_t QuantizedBytes(int64_t k, int64_t columns);

// Returns how many bytes the runs of a product write in addition to y; 0: no scratch is needed.
uint64_t ScratchBytes(const Product& product, const ProductTuning& tuning);

// Quantises operand x into scratch, for a product with quantised w.
KernelRun QuantizeRun(const Product& product);

// Returns whether there are enough columns to be worth grouping by expert.
bool NeedsLists(const Product& product, const ProductTuning& tuning);
// Lists the columns of each expert: reads operand ids, writes scratch after the activations.
KernelRun ListColumnsRun(const Product& product, const ProductTuning& tuning);

// Multiplies, as a GEMV or as a GEMM. Needs the results of the runs above.
KernelRun ProductRun(const Product& product, const ProductTuning& tuning);

}  // namespace trine::vulkan
