#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

float Sum(const float* x, int64_t n) {
  Sums32 sums;
  for (int64_t i = 0; i < n; ++i) sums.Add(i, x[i]);
  return sums.Total();
}

float SumOfSquares(const float* x, int64_t n) {
  Sums32 sums;
  for (int64_t i = 0; i < n; ++i) sums.Add(i, x[i] * x[i]);
  return sums.Total();
}

const float* OptionalRow(const View* view) { return view ? F32Row(*view, 0) : nullptr; }

}  // namespace

void RmsNorm(const View& x, const View* weight, float eps, const View& dst, Range rows) {
  const int64_t n = x.dims[0];
  const float inverse_n = Recip(static_cast<float>(n));
  const float* w = OptionalRow(weight);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* from = F32Row(x, r);
    float* to = F32Row(dst, r);
    const float inverse_rms = Rsqrt(SumOfSquares(from, n) * inverse_n + eps);
    for (int64_t i = 0; i < n; ++i) {
      const float normed = from[i] * inverse_rms;
      to[i] = Canon(w ? normed * w[i] : normed);
    }
  }
}

void LayerNorm(const View& x, const View* weight, const View* bias, float eps, const View& dst,
               Range rows) {
  const int64_t n = x.dims[0];
  const float inverse_n = Recip(static_cast<float>(n));
  const float* w = OptionalRow(weight);
  const float* b = OptionalRow(bias);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* from = F32Row(x, r);
    float* to = F32Row(dst, r);
    // Canon'd, since the difference of two close values may be 2^-73, and its square a denormal.
    const float mean = Canon(Sum(from, n) * inverse_n);
    for (int64_t i = 0; i < n; ++i) to[i] = Canon(from[i] - mean);
    const float inverse_deviation = Rsqrt(SumOfSquares(to, n) * inverse_n + eps);
    for (int64_t i = 0; i < n; ++i) {
      float y = to[i] * inverse_deviation;
      if (w) y = y * w[i];
      if (b) y = y + b[i];
      to[i] = Canon(y);
    }
  }
}

}  // namespace trine::reference
