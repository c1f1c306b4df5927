#include "kernels/cpu/ops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using reference::RopeMode;

template <int N>
struct Pairs {
  F32<N> x0, x1;
};

template <int N>
TRINE_INLINE Pairs<N> Rotate(Pairs<N> x, F32<N> cosine, F32<N> sine) {
  return {Canon(x.x0 * cosine - x.x1 * sine), Canon(x.x0 * sine + x.x1 * cosine)};
}

// Pairs (i, i + pairs).
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

// Four pairs (2i, 2i + 1).
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

void Rope(const View& x, const View& table, RopeMode mode, const View& dst, Range rows) {
  const int64_t pairs = table.dims[0] / 2;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cosine = FloatsAt(table, PositionOfRow(x, r).i2);
    const float* sine = cosine + pairs;
    const float* from = FloatsAt(x, r);
    float* to = FloatsAt(dst, r);
    if (mode == RopeMode::kHalves) {
      RotateHalves(from, cosine, sine, pairs, to);
    } else {
      RotateInterleaved(from, cosine, sine, pairs, to);
    }
    for (int64_t i = 2 * pairs; i < x.dims[0]; ++i) to[i] = from[i];
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
