#include <cstdint>

#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/product/chunk_tile.h"
#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/paired_columns.h"
#include "kernels/cpu/simd/amx.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Columns are multiplied in multiples of this number, so that no pair is divided.
constexpr int kColumnMultiple = 8;
static_assert(kColumnMultiple % kCellColumns == 0 && kMaxColumns % kColumnMultiple == 0);
// The least result of ColumnsInReach. With fewer columns, tiles would not pay.
constexpr int kLeastInReach = 32;

void Zero(const View& dst, int64_t slot, int64_t token, Range features) {
  float* y = F32Row(dst, slot, token, 0);
  for (int64_t i = features.begin; i < features.end; ++i) y[i] = 0.0f;
}

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
                              w.packed, w.dims[0], bias ? F32Row(*bias, 0) : nullptr};
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
      columns.x[c] = F32Row(x, first + c, 0, 0);
      columns.y[c] = F32Row(dst, first + c, 0, 0);
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

// Multiplies an expert with all slots that chose it, as its columns, so that its weights are read
// once for all of them.
void MoeMatmul(const View& w, const View& x, const ActivationChunk* chunks, const View& ids,
               const View* bias, const View& dst, Range features, const Tuning& tuning) {
  const int64_t n_used = dst.dims[1], tokens = dst.dims[2], n_experts = w.dims[2];
  const int64_t x_slots = x.dims[1];
  const auto id = [&](int64_t slot, int64_t token) -> int64_t {
    return reinterpret_cast<const int32_t*>(RowAt(ids, token, 0, 0))[slot];
  };
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t slot = 0; slot < n_used; ++slot) {
      const int64_t expert = id(slot, token);
      if (expert < 0 || expert >= n_experts) Zero(dst, slot, token, features);
    }
  }
  Columns columns;
  columns.tuning = tuning;
  const int in_reach = ColumnsInReach(tuning.caches);
  columns.step = ActivationStep(x_slots * x.dims[2]);
  for (int64_t expert = 0; expert < n_experts; ++expert) {
    const WeightRows weights = {w.type,       RowAt(w, 0, expert, 0),
                                w.strides[1], w.packed,
                                w.dims[0],    bias ? F32Row(*bias, expert, 0, 0) : nullptr};
    columns.count = 0;
    for (int64_t i = 0; i < n_used * tokens; ++i) {
      const int64_t slot = i % n_used, token = i / n_used;
      if (id(slot, token) != expert) continue;
      const int64_t x_slot = x_slots == 1 ? 0 : slot;
      const int c = columns.count++;
      columns.chunks[c] =
          chunks ? chunks + FirstChunkOf(token * x_slots + x_slot, x_slots * x.dims[2], weights.k)
                 : nullptr;
      columns.x[c] = F32Row(x, x_slot, token, 0);
      columns.y[c] = F32Row(dst, slot, token, 0);
      if (columns.count == in_reach) {
        DotColumns(weights, columns, features);
        columns.count = 0;
      }
    }
    if (columns.count != 0) DotColumns(weights, columns, features);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
