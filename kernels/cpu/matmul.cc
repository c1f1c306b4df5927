#include <cstdint>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/paired_columns.h"
#include "kernels/cpu/record_product.h"
#include "kernels/cpu/rows.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

void Matmul(const View& w, const View& x, const ActivationChunk* chunks, const View* bias,
            const View& dst, Range features) {
  const WeightRows weights = {w.type,   w.data,    w.strides[1],
                              w.packed, w.dims[0], bias ? FloatsAt(*bias, 0) : nullptr};
  const int64_t m = x.dims[1];
#if TRINE_HAS_AMX
  if (chunks != nullptr && m >= kInterleavedRows) {
    return MultiplyRecords(weights, {m, chunks, dst.data, dst.strides[1]}, features);
  }
#endif
  Columns columns;
  columns.paired = LieInPairs(m);
  columns.step = ActivationStep(m);
  for (int64_t first = 0; first < m; first += kMaxColumns) {
    columns.count = static_cast<int>(m - first < kMaxColumns ? m - first : kMaxColumns);
    for (int c = 0; c < columns.count; ++c) {
      columns.chunks[c] = chunks ? chunks + FirstChunkOf(first + c, m, weights.k) : nullptr;
      columns.x[c] = FloatsAt(x, first + c, 0, 0);
      columns.y[c] = FloatsAt(dst, first + c, 0, 0);
    }
    DotColumns(weights, columns, features);
  }
}

static_assert(kMaxColumns % 2 == 0);  // no pair is torn

void DotColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  if (weights.packed) return DotPackedColumns(weights, columns, rows);
  switch (weights.type) {
    case quant::Type::kF32:
    case quant::Type::kF16:
    case quant::Type::kBF16:
      return DotFloatColumns(weights, columns, rows);
    default:
      return DotQuantizedColumns(weights, columns, rows);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
