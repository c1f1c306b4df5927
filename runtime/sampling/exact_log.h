// The natural logarithm of the contract: a fixed sequence of binary64 add, multiply and divide.
//
// Only the host computes logarithms, a few per token, so they are binary64, whose operations are
// correctly rounded on every processor. docs/numerics.md is the normative text. Include this header
// only in files that are compiled with -ffp-contract=off; the function has internal linkage, so
// that no other file's copy is used instead.

#pragma once

#include <bit>
#include <cstdint>

namespace trine {

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// Returns log(x). REQUIRES: x is normal and > 0.
static inline double ExactLog(double x) {
  // x = 2^n f with f in [sqrt(1/2), sqrt(2)); log f = 2 atanh(z), z = (f - 1) / (f + 1).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t n = static_cast<int64_t>(bits >> 52) - 1023;
  double f = std::bit_cast<double>((bits & 0xfffffffffffffull) | (uint64_t{1023} << 52));
  if (f >= 0x1.6a09e667f3bcdp+0) {
    f = f * 0.5;
    ++n;
  }
  const double z = (f - 1.0) / (f + 1.0);
  const double z2 = z * z;
  double p = 1.0 / 21.0;
  for (int odd = 19; odd >= 3; odd -= 2) p = p * z2 + 1.0 / odd;
  // log f = 2z + 2z z2 p: the first term is nearly exact, so the rounding of p hardly shows.
  const double log_f = (z + z) + ((z + z) * z2) * p;
  // The high part of ln 2 has 33 bits, so n times it is exact.
  const double dn = static_cast<double>(n);
  return dn * 0x1.62e42fef00000p-1 + (log_f + dn * 0x1.473de6af278edp-34);
}

}  // namespace trine
