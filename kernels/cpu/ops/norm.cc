#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/simd/map_row.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using Value = F32<kRowLanes>;

// Returns the sum of term(x) over the row, in 32 classes. The tail is filled up with zeros, which
// change no partial sum, because term(0) is 0.
template <typename Term>
TRINE_INLINE float SumOf(const float* x, int64_t n, Term term) {
  F32x32 sums = Splat<32>(0.0f);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) sums += term(Load<32>(x + i));
  if (i < n) sums += term(LoadPartial<32>(x + i, n - i));
  return JoinSums(sums);
}

float Sum(const float* x, int64_t n) {
  return SumOf(x, n, [](F32x32 value) { return value; });
}

float SumOfSquares(const float* x, int64_t n) {
  return SumOf(x, n, [](F32x32 value) { return value * value; });
}

const float* OptionalRow(const View* view) {
  return view ? reinterpret_cast<const float*>(view->data) : nullptr;
}

// Writes x * factor, times w and plus b if these are not null. Each case has its own loop.
void ScaleRow(const float* x, float factor, const float* w, const float* b, int64_t n, float* to) {
  const Value r = Splat<kRowLanes>(factor);
  if (w && !b) return MapRows(x, w, to, n, [=](Value v, Value wv) { return Canon((v * r) * wv); });
  if (!w && b) return MapRows(x, b, to, n, [=](Value v, Value bv) { return Canon(v * r + bv); });
  if (!w) return MapRow(x, to, n, [=](Value v) { return Canon(v * r); });
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    const Value scaled = (Load<kRowLanes>(x + i) * r) * Load<kRowLanes>(w + i);
    Store(Canon(scaled + Load<kRowLanes>(b + i)), to + i);
  }
  if (i < n) {
    const int64_t rest = n - i;
    const Value scaled =
        (LoadPartial<kRowLanes>(x + i, rest) * r) * LoadPartial<kRowLanes>(w + i, rest);
    StorePartial(Canon(scaled + LoadPartial<kRowLanes>(b + i, rest)), to + i, rest);
  }
}

}  // namespace

void RmsNorm(const View& x, const View* weight, float eps, const View& dst, Range rows) {
  const int64_t n = x.dims[0];
  const float inverse_n = Recip(static_cast<float>(n));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* from = F32Row(x, r);
    const float inverse_rms = Rsqrt(SumOfSquares(from, n) * inverse_n + eps);
    ScaleRow(from, inverse_rms, OptionalRow(weight), nullptr, n, F32Row(dst, r));
  }
}

void LayerNorm(const View& x, const View* weight, const View* bias, float eps, const View& dst,
               Range rows) {
  const int64_t n = x.dims[0];
  const float inverse_n = Recip(static_cast<float>(n));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* from = F32Row(x, r);
    float* to = F32Row(dst, r);
    const Value mean = Splat<kRowLanes>(Canon(Sum(from, n) * inverse_n));
    MapRow(from, to, n, [=](Value v) { return Canon(v - mean); });
    const float inverse_deviation = Rsqrt(SumOfSquares(to, n) * inverse_n + eps);
    ScaleRow(to, inverse_deviation, OptionalRow(weight), OptionalRow(bias), n, to);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
