// The scalar functions of the exactness contract (docs/numerics.md), as in
// kernels/reference/math.h. They only add, subtract, multiply, compare and use integers. Arguments
// must be canonical unless a function says otherwise.
#include "exact.glsl"

float Bits(uint bits) { return uintBitsToFloat(bits); }

// Returns 0 - x by flipping the sign bit, because for 0 - x a driver may return the other zero.
float Negate(float x) { return Bits(floatBitsToUint(x) ^ 0x80000000u); }

// Returns the nearest integer, ties to even, for abs(x) < 2^22.
int Round(float x) {
  precise float shifted = x + 12582912.0;
  return int(floatBitsToUint(shifted) - 0x4b400000u);
}

// Returns 1/x, correctly rounded, for 2^-126 <= abs(x) < 2^126; +0 elsewhere. An iteration comes
// near, and the integer remainder 2^47 - divisor * quotient, modulo 2^32, corrects it. Here and
// below, selections replace branches: the invocations of a wave would take all branches anyway.
float Recip(float x) {
  const uint bits = floatBitsToUint(x);
  const uint sign = bits & 0x80000000u, exponent = (bits >> 23) & 0xffu, fraction = bits & 0x7fffffu;
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
    const int up = int(2 * remainder > divisor);
    quotient += uint(up);
    remainder -= up * divisor;
  }
  for (int i = 0; i < 2; ++i) {
    const int down = int(2 * remainder < -divisor);
    quotient -= uint(down);
    remainder += down * divisor;
  }
  const uint rounded = ((253u - exponent) << 23) + (quotient - 0x800000u);
  const uint result = fraction == 0u ? (254u - exponent) << 23 : rounded;
  return exponent == 0u || exponent >= 253u ? 0.0 : Bits(sign | result);
}

// Returns the square root, correctly rounded, of a normal x > 0; +0 elsewhere. Works as Recip does,
// with the remainder N - root^2.
float Sqrt(float x) {
  const uint bits = floatBitsToUint(x), exponent = bits >> 23, fraction = bits & 0x7fffffu;
  const uint odd = (exponent & 1u) ^ 1u;
  const uint a_bits = ((127u + odd) << 23) | fraction;
  precise float a = Bits(a_bits);
  precise float half_a = 0.5 * a;
  precise float y = Bits(0x5f3759dfu - (a_bits >> 1));
  for (int i = 0; i < 3; ++i) y = y * (1.5 - half_a * (y * y));
  precise float scaled = (a * y) * 8388608.0;
  int root = int(scaled);
  int remainder = int(((fraction | 0x800000u) << (23u + odd)) - uint(root) * uint(root));
  for (int i = 0; i < 4; ++i) {
    const int up = int(remainder > root);
    remainder -= up * (2 * root + 1);
    root += up;
  }
  for (int i = 0; i < 4; ++i) {
    const int down = int(remainder <= -root);
    remainder += down * (2 * root - 1);
    root -= down;
  }
  const uint result = (((exponent - odd + 127u) >> 1) << 23) + (uint(root) - 0x800000u);
  return exponent == 0u || exponent >= 255u ? 0.0 : Bits(result);
}

float Rsqrt(float x) { return Recip(Sqrt(x)); }

// Returns e^x for -44 <= x <= 44; 0 below, e^44 above.
float Exp(float x) {
  precise float clamped = min(max(x, -44.0), 44.0);
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
  return x < -44.0 ? 0.0 : Bits(floatBitsToUint(p) + (uint(n) << 23));
}

// Returns 1 / (1 + e^-x), not made canonical.
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
  precise float t = min(max(x, -16.0), 16.0);
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

// inverse_cap must be Recip(cap).
float Softcap(float x, float cap, float inverse_cap) {
  precise float inner = x * inverse_cap;
  precise float y = cap * Tanh(Canon(inner));
  return Canon(y);
}
