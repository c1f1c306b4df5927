// The runs of matmul and moe_matmul, and of what goes before them: quantising activations,
// and listing the columns of each expert.
//
//   Product p = {w, packed, x, bias, y};
//   if (std::string why = WhyNotProduct(p); !why.empty()) ...
//   if (quant::IsQuantized(p.w.type)) Add(QuantizeRun(p));
//   if (NeedsLists(p, tuning)) Add(ListColumnsRun(p, tuning));
//   Add(ProductRun(p, tuning));
//
// The first two write scratch, ScratchBytes of it, from Product::scratch_offset on. Products of the
// same x may share what the first call wrote; the second belongs to ids. Bindings are whole words
// of 4 bytes: where weights end within one (MXFP4), so do they.
#ifndef TRINE_KERNELS_VULKAN_PRODUCTS_H_
#define TRINE_KERNELS_VULKAN_PRODUCTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

struct Product {
  TensorView w;         // [k, n]; of experts [k, n, experts in the binding]
  bool packed = false;  // w is in the layout of packed_rows.h: strides are those of packed rows
  TensorView x;         // [k, m]; of experts [k, used or 1, m]
  std::optional<TensorView> bias;  // [n]; of experts [n, all experts]
  TensorView y;                    // [n, m]; of experts [n, used, m]

  // moe_matmul. Weights that don't fit one binding are multiplied by several products: w then has
  // some of the experts, from first_expert on. The one with first_expert 0 makes the zeros of ids
  // that are no expert.
  std::optional<TensorView> ids;  // i32 [used, m]
  int64_t experts = 0;            // all of them
  int64_t first_expert = 0;

  uint64_t scratch_offset = 0;  // a multiple of 16
};

// How products use the device; no result depends on it.
struct ProductTuning {
  bool int_dot = false;  // shaders with OpSDot

  // Few columns. A workgroup is a multiple of 32.
  uint32_t gemv_workgroup = 64;
  uint32_t gemv_subgroup = 0;  // to be required; 0: the driver's choice
  uint32_t gemv_lanes = 8;     // of a row of a quantised type, at least: 8, 16 or 32
  uint32_t gemv_rows = 2;      // at a time, at most; a power of two
  uint32_t gemv_blocks = 1;    // of a lane at a time
  uint32_t gemv_columns = 8;   // at a time; more columns than this are a GEMM's
  // Invocations that keep the device busy: where a matrix has few rows, fewer are made at a time
  // and each is given more lanes.
  uint32_t gemv_fill = 16384;

  // Many columns: results of an invocation. A tile of a quantised type has 8 * rows by 4 * columns.
  uint32_t gemm_rows = 4;
  uint32_t gemm_columns = 8;
};

// Shared memory of a workgroup under a tuning, whichever the product: at the most, as types with
// fewer scales need less.
uint64_t GemvSharedBytes(const ProductTuning& tuning);
uint64_t GemmSharedBytes(const ProductTuning& tuning);

// "" or why these views can't be multiplied by these shaders.
std::string WhyNotProduct(const Product& product);

// Of quantised activations: bytes of `columns` columns of k values.
uint64_t QuantizedBytes(int64_t k, int64_t columns);

// All that the runs of a product write besides y; 0: none is needed.
uint64_t ScratchBytes(const Product& product, const ProductTuning& tuning);

// Reads operand x, writes scratch. Of a quantised w.
KernelRun QuantizeRun(const Product& product);

// Whether there are columns enough for the experts' to be put together.
bool NeedsLists(const Product& product, const ProductTuning& tuning);
// Reads operand ids, writes scratch behind the activations.
KernelRun ListColumnsRun(const Product& product, const ProductTuning& tuning);

KernelRun ProductRun(const Product& product, const ProductTuning& tuning);

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_PRODUCTS_H_
