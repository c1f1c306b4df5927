// Makes the runs of the ops that one shader does without preparation: ops value by value, copies,
// gather_rows, top_k, moe_route and moe_combine.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/reference/ops.h"
#include "kernels/vulkan/runs/dispatch.h"

namespace trine::vulkan {

// The next six ops work value by value. All operands are f32 views with the dims of y, except that
// a dimension of 1 in the b of add and mul repeats. `workgroup` may be any size.

// Operands: a, b, y.
KernelRun AddRun(const TensorView& a, const TensorView& b, const TensorView& y, uint32_t workgroup);
KernelRun MulRun(const TensorView& a, const TensorView& b, const TensorView& y, uint32_t workgroup);
// Operands: gate, up, y.
KernelRun GluRun(const TensorView& gate, const TensorView& up, const reference::GluParams& params,
                 const TensorView& y, uint32_t workgroup);
// Does what GluRun does, but writes y to scratch as columns of quantised activations, beginning at
// byte `quantized`. With `writes_y` also writes y itself. Columns are [n, inner, outer]; n is a
// multiple of 32.
KernelRun GluQuantizeRun(const TensorView& gate, const TensorView& up,
                         const reference::GluParams& params, const TensorView& y, bool writes_y,
                         uint64_t quantized);

// Operands: x, y.
KernelRun ScaleRun(const TensorView& x, float scale, const TensorView& y, uint32_t workgroup);
KernelRun SoftcapRun(const TensorView& x, float cap, const TensorView& y, uint32_t workgroup);
KernelRun ActivationRun(const TensorView& x, reference::ActivationKind kind, const TensorView& y,
                        uint32_t workgroup);

// For copy and gather_rows, `workgroup` may be any size too.

// Operands: x, y, of the same dims. Views of one type, which may be any type, are copied as bytes.
// f32, f16 and bf16 are converted into each other.
KernelRun CopyRun(const TensorView& x, const TensorView& y, uint32_t workgroup);

// The rows of a table that are bound, if the table is larger than a binding may be. The view of
// such a table has the dims of the whole table and the offset of the window's first row.
struct TableWindow {
  int64_t first_row = 0;
  int64_t rows = 0;
};

// Operands: table [k, rows] of any weight type, ids [n], y [k, n]. Each window of a table needs a
// run, in any order.
KernelRun GatherRowsRun(const TensorView& table, const TableWindow& window, const TensorView& ids,
                        const TensorView& y, uint32_t workgroup);
inline KernelRun GatherRowsRun(const TensorView& table, const TensorView& ids, const TensorView& y,
                               uint32_t workgroup) {
  return GatherRowsRun(table, {0, table.dims[1]}, ids, y, workgroup);
}

// For the ops below, `workgroup` must be a power of two, at least 32.

// Operands: x [n, rows], ids i32 [k, rows], values [k, rows].
KernelRun TopKRun(const TensorView& x, const TensorView& ids, const TensorView& values,
                  uint32_t workgroup);

// Operands: logits [experts, tokens], bias [experts] or null, ids i32 [used, tokens], weights
// [used, tokens].
KernelRun MoeRouteRun(const TensorView& logits, const TensorView* bias,
                      const reference::MoeRouteParams& params, const TensorView& ids,
                      const TensorView& weights, uint32_t workgroup);

// Operands: x [n, used, tokens], weights [used, tokens], y [n, tokens].
KernelRun MoeCombineRun(const TensorView& x, const TensorView& weights, const TensorView& y,
                        uint32_t workgroup);

// Runs of rms_norm and layer_norm of f32, one workgroup for each row. The same run can add another
// tensor before the norm and quantise the result.
struct Norm {
  bool centred = false;  // true: layer_norm; false: rms_norm
  TensorView x;
  std::optional<TensorView> weight, bias;  // [n]
  float eps = 0;
  TensorView y;

  // Set both or none: x + addend is then normed and also written to sum; both have the dims of x.
  std::optional<TensorView> addend, sum;
  // When set, y is also written as quantised activations, one column for each row, to this offset
  // of scratch, a multiple of 16. n must be a multiple of 32.
  std::optional<uint64_t> quantized;
  bool writes_y = true;  // false: y is only quantised
};

// The operands of NormRun. y and sum may each be the view of x or of addend, but not of each other.
enum NormOperand : uint32_t { kNormX, kNormWeight, kNormBias, kNormAddend, kNormSum, kNormY };

// Returns the workgroup that suits rows of n values, of at most `most` invocations.
uint32_t NormWorkgroup(int64_t n, uint32_t most);

// Returns the most values of a row, which are held in registers, for workgroups of at most `most`.
int64_t MostNormValues(uint32_t most);

// `workgroup` must be a power of two from 32 to 512.
KernelRun NormRun(const Norm& norm, uint32_t workgroup);

}  // namespace trine::vulkan
