// The scalar functions of the exactness contract, each a fixed sequence of add, subtract, multiply,
// compare and integer instructions: no division, square root, fma or library call.
//
// docs/numerics.md is the normative text. Arguments are canonical (+0, or 2^-50 to 2^50 in
// magnitude) unless a comment allows more. Files that include this header are compiled with
// -ffp-contract=off; the functions have internal linkage, so that each file keeps its own copy.
#pragma once

#include <cstdint>

#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"

namespace trine::reference {

// The version of the contract. Every change that can change a bit of any result raises it. It is
// part of the logits hash, of --version and of every stored KV block.
inline constexpr uint32_t kNumericsVersion = 1;

using quant::Abs;
using quant::Bf16ToF32;
using quant::Bits;
using quant::Canon;
using quant::F16ToF32;
using quant::F32ToBf16;
using quant::F32ToF16;
using quant::F32ToF16Saturated;
using quant::FromBits;
using quant::kF16Max;
using quant::kHuge;
using quant::kTiny;
using quant::Recip;
using quant::Round;

// Returns the correctly rounded square root of a normal x > 0; +0 for any other x. As in Recip, an
// iteration comes near and the integer remainder N - S^2 decides.
static constexpr float Sqrt(float x) {
  const uint32_t exponent = Bits(x) >> 23;  // with the sign bit: negative x is refused below
  const uint32_t fraction = Bits(x) & 0x7fffffu;
  if (exponent == 0 || exponent >= 255) return 0.0f;

  const uint32_t odd = (exponent & 1u) ^ 1u;
  const float a = FromBits(((127 + odd) << 23) | fraction);  // x / 4^n, in [1, 4)
  const float half_a = 0.5f * a;
  float y = FromBits(0x5f3759dfu - (Bits(a) >> 1));  // a guess of 1 / sqrt(a)
  for (int i = 0; i < 3; ++i) y = y * (1.5f - half_a * (y * y));

  // root ~ sqrt(N), N = mantissa * 2^(23 + odd). The remainder is small: 32 wrapping bits hold it.
  const uint32_t mantissa = fraction | 0x800000u;
  uint32_t root = static_cast<uint32_t>((a * y) * 0x1p+23f);
  int32_t remainder = static_cast<int32_t>((mantissa << (23 + odd)) - root * root);
  for (int i = 0; i < 4; ++i) {
    if (remainder > static_cast<int32_t>(root)) {
      remainder -= static_cast<int32_t>(2 * root + 1);
      ++root;
    }
  }
  for (int i = 0; i < 4; ++i) {
    if (remainder <= -static_cast<int32_t>(root)) {
      remainder += static_cast<int32_t>(2 * root - 1);
      --root;
    }
  }
  return FromBits((((exponent - odd + 127) >> 1) << 23) + (root - 0x800000u));
}

static constexpr float Rsqrt(float x) { return Recip(Sqrt(x)); }

// Returns e^x for -44 <= x <= 44, 0 below, e^44 above: 0 or in [2^-64, 2^64]. Within 1.17 ULP.
static constexpr float Exp(float x) {
  if (x < -44.0f) return 0.0f;
  if (x > 44.0f) x = 44.0f;
  // x = n ln2 + r. The high part of ln2 has 15 bits, so n * high is exact.
  const int32_t n = Round(x * FromBits(0x3fb8aa3b));
  const float fn = static_cast<float>(n);
  const float r = (x - fn * FromBits(0x3f317200)) - fn * FromBits(0x35bfbe8e);
  float p = FromBits(0x3ab510d4);
  p = p * r + FromBits(0x3c091db5);
  p = p * r + FromBits(0x3d2aac7e);
  p = p * r + FromBits(0x3e2aaa48);
  p = p * r + FromBits(0x3efffffe);
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return FromBits(Bits(p) + (static_cast<uint32_t>(n) << 23));  // p * 2^n
}

static constexpr float Sigmoid(float x) { return Canon(Recip(1.0f + Exp(-x))); }

static constexpr float Silu(float x) { return Canon(x * Recip(1.0f + Exp(-x))); }

// Returns the tanh form, x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)). The argument of the
// polynomial is clamped: beyond 16 the sigmoid is 0 or 1, and the cube of a large x would overflow.
static constexpr float Gelu(float x) {
  const float t = x > 16.0f ? 16.0f : x < -16.0f ? -16.0f : x;
  const float cubic = 1.0f + FromBits(0x3d372713) * (t * t);
  const float u = (FromBits(0x3fcc422a) * t) * cubic;
  return Canon(x * Recip(1.0f + Exp(-u)));
}

// Returns 1 - 2 / (1 + e^2x), accurate to 1.8e-7 absolute, but near zero not relative.
static constexpr float Tanh(float x) { return Canon(1.0f - 2.0f * Recip(1.0f + Exp(x + x))); }

static constexpr float Relu(float x) { return x > 0.0f ? Canon(x) : 0.0f; }

// Returns cap * tanh(x / cap), with inverse_cap = Recip(cap).
static constexpr float SoftcapValue(float x, float cap, float inverse_cap) {
  return Canon(cap * Tanh(Canon(x * inverse_cap)));
}

// Float sums in the order of the contract: N partial sums, element k in class k mod N, by
// increasing k, joined by halves. Elements that are left out (a tail, a mask) add nothing to their
// class.
template <int N>
struct ClassSums {
  static_assert(N > 0 && (N & (N - 1)) == 0);

  float class_sum[N] = {};

  void Add(int64_t k, float term) { class_sum[k % N] += term; }

  // Joins the classes in place: for n = N/2, N/4 .. 1: s[j] += s[j + n]. Returns s[0].
  float Total() {
    for (int n = N / 2; n > 0; n /= 2) {
      for (int j = 0; j < n; ++j) class_sum[j] += class_sum[j + n];
    }
    return class_sum[0];
  }
};

using Sums32 = ClassSums<32>;

}  // namespace trine::reference
