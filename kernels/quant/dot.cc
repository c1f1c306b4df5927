#include "kernels/quant/dot.h"

namespace trine::quant {
namespace {

// 32 products of the largest scale, weight and activation magnitudes.
constexpr int32_t Bound(int32_t scale, int32_t q) { return 32 * scale * q * 127; }

constexpr int32_t kExact = 1 << 24;      // every integer up to here is a binary32
static_assert(Bound(1, 128) < kExact);   // Q8_0, whose files may hold -128
static_assert(Bound(63, 31) < kExact);   // Q5_K, the largest with unsigned scales
static_assert(Bound(128, 32) < kExact);  // Q6_K: 16,646,144
static_assert(Bound(32, 127) < kExact);  // IQ4_XS: 16,516,096
static_assert(Bound(63, 1) < kExact);    // M of Q4_K and Q5_K

}  // namespace

IntegerDot DotIntegers(const Group& weight, const ActivationBlock& activation) {
  // Both factors are read through int8_t*: GCC 12.2 vectorises a product with a cast in the loop
  // as if it were unsigned (VNNI).
  const int8_t* q = weight.q;
  const int8_t* a = activation.q;
  int32_t half[2] = {0, 0};
  for (int i = 0; i < 16; ++i) half[0] += q[i] * a[i];
  for (int i = 16; i < 32; ++i) half[1] += q[i] * a[i];
  return {weight.scale[0] * half[0] + weight.scale[1] * half[1],
          weight.min[0] * activation.sum[0] + weight.min[1] * activation.sum[1]};
}

float BlockTerm(const Group& weight, const ActivationBlock& activation) {
  const IntegerDot dot = DotIntegers(weight, activation);
  const float scaled = (weight.d * activation.d) * static_cast<float>(dot.i);
  const float minimum = (weight.dmin * activation.d) * static_cast<float>(dot.m);
  return scaled - minimum;
}

float RowSums::Total() const {
  const float* s = class_sum;
  const float even = (s[0] + s[4]) + (s[2] + s[6]);
  const float odd = (s[1] + s[5]) + (s[3] + s[7]);
  return even + odd;
}

int32_t LargestIntegerDot(Type type) {
  switch (type) {
    case Type::kQ4_0:
      return Bound(1, 8);
    case Type::kQ4_1:
      return Bound(1, 15);
    case Type::kQ5_0:
      return Bound(1, 16);
    case Type::kQ5_1:
      return Bound(1, 31);
    case Type::kQ8_0:
    case Type::kQ8_KV:
      return Bound(1, 128);
    case Type::kQ2_K:
      return Bound(15, 3);
    case Type::kQ3_K:
      return Bound(32, 4);
    case Type::kQ4_K:
      return Bound(63, 15);
    case Type::kQ5_K:
      return Bound(63, 31);
    case Type::kQ6_K:
      return Bound(128, 32);
    case Type::kIQ4_NL:
      return Bound(1, 127);
    case Type::kIQ4_XS:
      return Bound(32, 127);
    case Type::kTQ1_0:
      return Bound(1, 1);
    case Type::kTQ2_0:
      return Bound(1, 2);
    case Type::kMXFP4:
      return Bound(1, 12);
    default:
      return 0;
  }
}

}  // namespace trine::quant
