#include <cstdint>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/paired_columns.h"
#include "kernels/cpu/record_product.h"
#include "kernels/cpu/rows.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Columns that are multiplied at a time; no pair is torn.
constexpr int kColumnMultiple = 8;
static_assert(kColumnMultiple % kCellColumns == 0 && kMaxColumns % kColumnMultiple == 0);
// With fewer in reach, tiles would not pay that do with many columns.
constexpr int kLeastInReach = 32;

}  // namespace

int ColumnsInReach(const Caches& caches) {
  constexpr int64_t kBytes = kTileChunks * sizeof(ActivationChunk);
  const int64_t columns = caches.second_level / 2 / kBytes / kColumnMultiple * kColumnMultiple;
  return static_cast<int>(columns < kLeastInReach ? kLeastInReach
                          : columns > kMaxColumns ? kMaxColumns
                                                  : columns);
}

void Matmul(const View& w, const View& x, const ActivationChunk* chunks, const View* bias,
            const View& dst, Range features, const Tuning& tuning) {
  const WeightRows weights = {w.type,   w.data,    w.strides[1],
                              w.packed, w.dims[0], bias ? FloatsAt(*bias, 0) : nullptr};
  const int64_t m = x.dims[1];
#if TRINE_HAS_AMX
  if (chunks != nullptr && m >= kInterleavedRows) {
    return MultiplyRecords(weights, {m, chunks, dst.data, dst.strides[1]}, features, tuning.caches);
  }
#endif
  Columns columns;
  columns.paired = chunks != nullptr && LieInPairs(m);
  columns.step = ActivationStep(m);
  columns.tuning = tuning;
  const int in_reach = ColumnsInReach(tuning.caches);
  for (int64_t first = 0; first < m; first += in_reach) {
    columns.count = static_cast<int>(m - first < in_reach ? m - first : in_reach);
    for (int c = 0; c < columns.count; ++c) {
      columns.chunks[c] = chunks ? chunks + FirstChunkOf(first + c, m, weights.k) : nullptr;
      columns.x[c] = FloatsAt(x, first + c, 0, 0);
      columns.y[c] = FloatsAt(dst, first + c, 0, 0);
    }
    DotColumns(weights, columns, features);
  }
}

bool MatmulHasWays(const View& w, int64_t columns) {
  if (columns <= 1) return false;
  if (!quant::IsQuantized(w.type)) return true;
  if (TRINE_HAS_AMX && columns >= kInterleavedRows) return false;
  return !LieInPairs(columns) || (w.packed && w.dims[0] <= kMaxUnpairedValues);
}

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
