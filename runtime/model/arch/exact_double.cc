#include "runtime/model/arch/exact_double.h"

#include <bit>
#include <cstdint>

namespace trine::exact_double {
namespace {

constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits: n * high is exact for small n
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInvLn2 = 0x1.71547652b82fep+0;

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
// pi/2 as the sum of three parts, of 31 bits, of 32 bits, and the rest. So k times either of the
// first two parts is exact for k < 2^21.
constexpr double kHalfPi1 = 0x1.921fb544p+0;
constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;

// Returns 2^n, -1022 <= n <= 1023.
double PowerOfTwo(int n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

}  // namespace

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1).
double Log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m = m * 0.5;
    ++e;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / static_cast<double>(k)) * z;
  const double log_m = 2.0 * (s + s * sum);
  return static_cast<double>(e) * kLn2High + (log_m + static_cast<double>(e) * kLn2Low);
}

double Exp(double x) {
  const double scaled = x * kInvLn2;
  const int n = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double fn = static_cast<double>(n);
  const double r = (x - fn * kLn2High) - fn * kLn2Low;
  double sum = 1.0;
  for (int k = 14; k >= 1; --k) sum = 1.0 + (r * sum) / static_cast<double>(k);
  return sum * PowerOfTwo(n);
}

void SinCos(double angle, double* sine, double* cosine) {
  const auto k = static_cast<int64_t>(angle * kTwoOverPi + 0.5);
  const double fk = static_cast<double>(k);
  const double r = ((angle - fk * kHalfPi1) - fk * kHalfPi2) - fk * kHalfPi3;
  const double z = r * r;
  double s = 1.0;
  for (int i = 18; i >= 2; i -= 2) s = 1.0 - (z * s) / static_cast<double>(i * (i + 1));
  s = r * s;
  double c = 1.0;
  for (int i = 19; i >= 1; i -= 2) c = 1.0 - (z * c) / static_cast<double>(i * (i + 1));
  const bool swap = (k & 1) != 0;
  const double sin_part = swap ? c : s;
  const double cos_part = swap ? s : c;
  *sine = (k & 2) != 0 ? -sin_part : sin_part;
  *cosine = ((k + 1) & 2) != 0 ? -cos_part : cos_part;
}

}  // namespace trine::exact_double
