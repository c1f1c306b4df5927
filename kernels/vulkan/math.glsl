// The scalar functions of the exactness contract (docs/numerics.md), as in kernels/reference/math.h:
// add, subtract, multiply, compare and integers alone. Arguments are canonical unless a function
// says more.
#include "exact.glsl"

float Bits(uint bits) { return uintBitsToFloat(bits); }

// By its sign bit: a driver may make another zero of 0 - x.
float Negate(float x) { return Bits(floatBitsToUint(x) ^ 0x80000000u); }

// The nearest integer, ties to even, for abs(x) < 2^22.
int Round(float x) {
  precise float shifted = x + 12582912.0;
  return int(floatBitsToUint(shifted) - 0x4b400000u);
}

// 1/x, correctly rounded, for 2^-126 <= abs(x) < 2^126; +0 elsewhere. An iteration comes near, and
// the integer remainder 2^47 - divisor * quotient, modulo 2^32, decides.
float Recip(float x) {
  const uint bits = floatBitsToUint(x);
  const uint sign = bits & 0x80000000u, exponent = (bits >> 23) & 0xffu, fraction = bits & 0x7fffffu;
  if (exponent == 0u || exponent >= 253u) return 0.0;
  if (fraction == 0u) return Bits(sign | ((254u - exponent) << 23));

  precise float m = Bits(0x3f800000u | fraction);
  precise float y = Bits(0x7ef311c7u - (0x3f800000u | fraction));
  y = y * (2.0 - m * y);
  y = y * (2.0 - m * y);
  y = y * (2.0 - m * y);
  precise float scaled = y * 16777216.0;
  const int divisor = int(fraction | 0x800000u);
  uint quotient = uint(scaled);
  int remainder = int(0u - uint(divisor) * quotient);
  for (int i = 0; i < 2; ++i) {
    if (2 * remainder > divisor) ++quotient, remainder -= divisor;
  }
  for (int i = 0; i < 2; ++i) {
    if (2 * remainder < -divisor) --quotient, remainder += divisor;
  }
  return Bits(sign | (((253u - exponent) << 23) + (quotient - 0x800000u)));
}

// The square root, correctly rounded, of a normal x > 0; +0 elsewhere. As Recip: the remainder is
// N - root^2.
float Sqrt(float x) {
  const uint bits = floatBitsToUint(x), exponent = bits >> 23, fraction = bits & 0x7fffffu;
  if (exponent == 0u || exponent >= 255u) return 0.0;

  const uint odd = (exponent & 1u) ^ 1u;
  const uint a_bits = ((127u + odd) << 23) | fraction;
  precise float a = Bits(a_bits);
  precise float half_a = 0.5 * a;
  precise float y = Bits(0x5f3759dfu - (a_bits >> 1));
  for (int i = 0; i < 3; ++i) y = y * (1.5 - half_a * (y * y));
  precise float scaled = (a * y) * 8388608.0;
  uint root = uint(scaled);
  int remainder = int(((fraction | 0x800000u) << (23u + odd)) - root * root);
  for (int i = 0; i < 4; ++i) {
    if (remainder > int(root)) remainder -= int(2u * root + 1u), ++root;
  }
  for (int i = 0; i < 4; ++i) {
    if (remainder <= -int(root)) remainder += int(2u * root - 1u), --root;
  }
  return Bits((((exponent - odd + 127u) >> 1) << 23) + (root - 0x800000u));
}

float Rsqrt(float x) { return Recip(Sqrt(x)); }

// e^x for -44 <= x <= 44; 0 below, e^44 above.
float Exp(float x) {
  if (x < -44.0) return 0.0;
  precise float clamped = x > 44.0 ? 44.0 : x;
  precise float scaled = clamped * Bits(0x3fb8aa3bu);
  const int n = Round(scaled);
  precise float fn = float(n);
  precise float r = (clamped - fn * Bits(0x3f317200u)) - fn * Bits(0x35bfbe8eu);
  precise float p = Bits(0x3ab510d4u);
  p = p * r + Bits(0x3c091db5u);
  p = p * r + Bits(0x3d2aac7eu);
  p = p * r + Bits(0x3e2aaa48u);
  p = p * r + Bits(0x3efffffeu);
  p = p * r + 1.0;
  p = p * r + 1.0;
  return Bits(floatBitsToUint(p) + (uint(n) << 23));
}

// 1 / (1 + e^-x), not canon'd.
float Logistic(float x) {
  precise float below = 1.0 + Exp(Negate(x));
  return Recip(below);
}

float Sigmoid(float x) { return Canon(Logistic(x)); }

float Silu(float x) {
  precise float y = x * Logistic(x);
  return Canon(y);
}

float Gelu(float x) {
  precise float t = x > 16.0 ? 16.0 : x < -16.0 ? -16.0 : x;
  precise float u = (Bits(0x3fcc422au) * t) * (1.0 + Bits(0x3d372713u) * (t * t));
  precise float y = x * Logistic(u);
  return Canon(y);
}

float Tanh(float x) {
  precise float twice = x + x;
  precise float below = 1.0 + Exp(twice);
  precise float y = 1.0 - 2.0 * Recip(below);
  return Canon(y);
}

float Relu(float x) { return x > 0.0 ? Canon(x) : 0.0; }

// inverse_cap is Recip(cap).
float Softcap(float x, float cap, float inverse_cap) {
  precise float inner = x * inverse_cap;
  precise float y = cap * Tanh(Canon(inner));
  return Canon(y);
}
