#include "kernels/cpu/map_row.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using reference::GluKind;
using reference::GluParams;

template <typename Function>
void ForEachGate(const View& gate, const View& up, const View& dst, Range rows, Function function) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    MapRows(FloatsAt(gate, r), FloatsAt(up, r), FloatsAt(dst, r), dst.dims[0], function);
  }
}

template <int N>
TRINE_INLINE F32<N> ClampedSwiglu(F32<N> gate, F32<N> up, F32<N> alpha, F32<N> limit) {
  const F32<N> g = Min(gate, limit);
  const F32<N> u = Max(Min(up, limit), -limit);
  const F32<N> activated = ZeroIfTiny(g * RecipOnePlusExp(-(alpha * g)));
  return Canon(activated * (u + Splat<N>(1.0f)));
}

}  // namespace

void Glu(const View& gate, const View& up, const GluParams& params, const View& dst, Range rows) {
  switch (params.kind) {
    case GluKind::kSilu:
      return ForEachGate(gate, up, dst, rows, [](auto g, auto u) { return Canon(Silu(g) * u); });
    case GluKind::kGelu:
      return ForEachGate(gate, up, dst, rows, [](auto g, auto u) { return Canon(Gelu(g) * u); });
    case GluKind::kClampedSwiglu: {
      const auto alpha = Splat<kRowLanes>(params.alpha);
      const auto limit = Splat<kRowLanes>(params.limit);
      return ForEachGate(gate, up, dst, rows,
                         [=](auto g, auto u) { return ClampedSwiglu(g, u, alpha, limit); });
    }
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
