#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/simd/map_row.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using reference::ActivationKind;

template <typename Function>
void ForEach(const View& x, const View& dst, Range rows, Function function) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    MapRow(F32Row(x, r), F32Row(dst, r), dst.dims[0], function);
  }
}

// Returns the row of b that belongs to row `at` of the destination.
const float* BroadcastRow(const View& b, const reference::RowIndex& at) {
  return F32Row(b, b.dims[1] == 1 ? 0 : at.i1, b.dims[2] == 1 ? 0 : at.i2,
                b.dims[3] == 1 ? 0 : at.i3);
}

template <typename Function>
void ForEachPair(const View& a, const View& b, const View& dst, Range rows, Function function) {
  const bool one_value = b.dims[0] == 1;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* a_row = F32Row(a, r);
    const float* b_row = BroadcastRow(b, IndexOfRow(dst, r));
    float* to = F32Row(dst, r);
    if (one_value) {
      const auto value = Splat<kRowLanes>(*b_row);
      MapRow(a_row, to, dst.dims[0], [&](F32<kRowLanes> x) { return function(x, value); });
    } else {
      MapRows(a_row, b_row, to, dst.dims[0], function);
    }
  }
}

using reference::GluKind;
using reference::GluParams;

template <typename Function>
void ForEachGate(const View& gate, const View& up, const View& dst, Range rows, Function function) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    MapRows(F32Row(gate, r), F32Row(up, r), F32Row(dst, r), dst.dims[0], function);
  }
}

template <int N>
TRINE_INLINE F32<N> ClampedSwiglu(F32<N> gate, F32<N> up, F32<N> alpha, F32<N> limit) {
  const F32<N> g = Min(gate, limit);
  const F32<N> u = Max(Min(up, limit), -limit);
  const F32<N> activated = ZeroIfTiny(g * RecipOnePlusExp(-(alpha * g)));
  return Canon(activated * (u + Splat<N>(1.0f)));
}

using reference::RopeMode;

template <int N>
struct Pairs {
  F32<N> x0, x1;
};

template <int N>
TRINE_INLINE Pairs<N> Rotate(Pairs<N> x, F32<N> cosine, F32<N> sine) {
  return {Canon(x.x0 * cosine - x.x1 * sine), Canon(x.x0 * sine + x.x1 * cosine)};
}

// Rotates pairs (i, i + pairs).
void RotateHalves(const float* from, const float* cosine, const float* sine, int64_t pairs,
                  float* to) {
  int64_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    const Pairs<kLanes> x = {Load<kLanes>(from + i), Load<kLanes>(from + pairs + i)};
    const auto y = Rotate(x, Load<kLanes>(cosine + i), Load<kLanes>(sine + i));
    Store(y.x0, to + i);
    Store(y.x1, to + pairs + i);
  }
  if (i == pairs) return;
  const int64_t rest = pairs - i;
  const Pairs<kLanes> x = {LoadPartial<kLanes>(from + i, rest),
                           LoadPartial<kLanes>(from + pairs + i, rest)};
  const auto y =
      Rotate(x, LoadPartial<kLanes>(cosine + i, rest), LoadPartial<kLanes>(sine + i, rest));
  StorePartial(y.x0, to + i, rest);
  StorePartial(y.x1, to + pairs + i, rest);
}

// Rotates four pairs (2i, 2i + 1).
TRINE_INLINE F32x8 RotateAdjacent(F32x8 x, F32x4 cosine, F32x4 sine) {
  const auto low = Low(x).v;
  const auto high = High(x).v;
  const Pairs<4> y = Rotate<4>({{__builtin_shufflevector(low, high, 0, 2, 4, 6)},
                                {__builtin_shufflevector(low, high, 1, 3, 5, 7)}},
                               cosine, sine);
  const F32x4 first = {__builtin_shufflevector(y.x0.v, y.x1.v, 0, 4, 1, 5)};
  const F32x4 last = {__builtin_shufflevector(y.x0.v, y.x1.v, 2, 6, 3, 7)};
  return Join(first, last);
}

void RotateInterleaved(const float* from, const float* cosine, const float* sine, int64_t pairs,
                       float* to) {
  int64_t i = 0;
  for (; i + 4 <= pairs; i += 4) {
    Store(RotateAdjacent(Load<8>(from + 2 * i), Load<4>(cosine + i), Load<4>(sine + i)),
          to + 2 * i);
  }
  if (i == pairs) return;
  const int64_t rest = pairs - i;
  StorePartial(RotateAdjacent(LoadPartial<8>(from + 2 * i, 2 * rest),
                              LoadPartial<4>(cosine + i, rest), LoadPartial<4>(sine + i, rest)),
               to + 2 * i, 2 * rest);
}

}  // namespace

void Add(const View& a, const View& b, const View& dst, Range rows) {
  ForEachPair(a, b, dst, rows, [](auto x, auto y) { return Canon(x + y); });
}

void Mul(const View& a, const View& b, const View& dst, Range rows) {
  ForEachPair(a, b, dst, rows, [](auto x, auto y) { return Canon(x * y); });
}

void Scale(const View& x, float scale, const View& dst, Range rows) {
  const auto factor = Splat<kRowLanes>(scale);
  ForEach(x, dst, rows, [=](auto value) { return Canon(value * factor); });
}

void Softcap(const View& x, float cap, const View& dst, Range rows) {
  const auto caps = Splat<kRowLanes>(cap);
  const auto inverses = Recip(caps);
  ForEach(x, dst, rows, [=](auto value) { return SoftcapValue(value, caps, inverses); });
}

void Activation(const View& x, ActivationKind kind, const View& dst, Range rows) {
  switch (kind) {
    case ActivationKind::kSilu:
      return ForEach(x, dst, rows, [](auto value) { return Silu(value); });
    case ActivationKind::kGelu:
      return ForEach(x, dst, rows, [](auto value) { return Gelu(value); });
    case ActivationKind::kRelu:
      return ForEach(x, dst, rows, [](auto value) { return Relu(value); });
    case ActivationKind::kTanh:
      return ForEach(x, dst, rows, [](auto value) { return Tanh(value); });
  }
}

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

void Rope(const View& x, const View& table, RopeMode mode, const View& dst, Range rows) {
  const int64_t pairs = table.dims[0] / 2;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cosine = F32Row(table, IndexOfRow(x, r).i2);
    const float* sine = cosine + pairs;
    const float* from = F32Row(x, r);
    float* to = F32Row(dst, r);
    if (mode == RopeMode::kHalves) {
      RotateHalves(from, cosine, sine, pairs, to);
    } else {
      RotateInterleaved(from, cosine, sine, pairs, to);
    }
    for (int64_t i = 2 * pairs; i < x.dims[0]; ++i) to[i] = from[i];
  }
}

void MoeCombine(const View& x, const View& weights, const View& dst, Range rows) {
  for (int64_t token = rows.begin; token < rows.end; ++token) {
    const float* weight = F32Row(weights, token);
    float* to = F32Row(dst, token);
    for (int64_t i = 0; i < dst.dims[0]; i += kRowLanes) {
      const int64_t rest = dst.dims[0] - i;
      const auto term = [&](int64_t slot) {
        const float* from = F32Row(x, slot, token, 0) + i;
        const auto values =
            rest >= kRowLanes ? Load<kRowLanes>(from) : LoadPartial<kRowLanes>(from, rest);
        return Canon(values * Splat<kRowLanes>(weight[slot]));
      };
      auto sum = term(0);
      for (int64_t slot = 1; slot < x.dims[1]; ++slot) sum = sum + term(slot);
      if (rest >= kRowLanes) {
        Store(Canon(sum), to + i);
      } else {
        StorePartial(Canon(sum), to + i, rest);
      }
    }
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
