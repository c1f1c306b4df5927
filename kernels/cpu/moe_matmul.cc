#include <cstdint>

#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/rows.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

void Zero(const View& dst, int64_t slot, int64_t token, Range features) {
  float* y = FloatsAt(dst, slot, token, 0);
  for (int64_t i = features.begin; i < features.end; ++i) y[i] = 0.0f;
}

}  // namespace

// The slots that chose an expert are its columns, so that its weights are read once for all of
// them.
void MoeMatmul(const View& w, const View& x, const ActivationChunk* chunks, const View& ids,
               const View* bias, const View& dst, Range features, const Tuning& tuning) {
  const int64_t n_used = dst.dims[1], tokens = dst.dims[2], n_experts = w.dims[2];
  const int64_t x_slots = x.dims[1];
  const auto id = [&](int64_t slot, int64_t token) -> int64_t {
    return reinterpret_cast<const int32_t*>(BytesAt(ids, token, 0, 0))[slot];
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
    const WeightRows weights = {w.type,       BytesAt(w, 0, expert, 0),
                                w.strides[1], w.packed,
                                w.dims[0],    bias ? FloatsAt(*bias, expert, 0, 0) : nullptr};
    columns.count = 0;
    for (int64_t i = 0; i < n_used * tokens; ++i) {
      const int64_t slot = i % n_used, token = i / n_used;
      if (id(slot, token) != expert) continue;
      const int64_t x_slot = x_slots == 1 ? 0 : slot;
      const int c = columns.count++;
      columns.chunks[c] =
          chunks ? chunks + FirstChunkOf(token * x_slots + x_slot, x_slots * x.dims[2], weights.k)
                 : nullptr;
      columns.x[c] = FloatsAt(x, x_slot, token, 0);
      columns.y[c] = FloatsAt(dst, slot, token, 0);
      if (columns.count == in_reach) {
        DotColumns(weights, columns, features);
        columns.count = 0;
      }
    }
    if (columns.count != 0) DotColumns(weights, columns, features);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
