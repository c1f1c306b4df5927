#include "kernels/quant/group.h"

#include <algorithm>

#include "kernels/quant/float_bits.h"

namespace trine::quant {
namespace {

int8_t Narrow(int value) { return static_cast<int8_t>(value); }

// Nibble i of a 32-value block: byte i's low half, then byte i's high half 16 values on.
int Nibble(const uint8_t* nibbles, int i) {
  return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
}

int Bit(const uint8_t* bits, int i) { return (bits[i / 8] >> (i % 8)) & 1; }

float PowerOfTwo(int exponent) { return FromBits(static_cast<uint32_t>(exponent + 127) << 23); }

void SetPlain(float d, Group* g) {
  g->d = d;
  g->dmin = 0.0f;
  g->scale[0] = g->scale[1] = 1;
  g->min[0] = g->min[1] = 0;
}

// d*q + m is d*q - m*(-1).
void SetAddedMinimum(uint16_t d, uint16_t m, Group* g) {
  SetPlain(F16ToF32(d), g);
  g->dmin = F16ToF32(m);
  g->min[0] = g->min[1] = -1;
}

void SetScale(int scale, Group* g) { g->scale[0] = g->scale[1] = scale; }

void Load(const BlockQ4_0& block, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  for (int i = 0; i < 32; ++i) g->q[i] = Narrow(Nibble(block.nibbles, i) - 8);
}

void Load(const BlockQ4_1& block, Group* g) {
  SetAddedMinimum(block.d, block.m, g);
  for (int i = 0; i < 32; ++i) g->q[i] = Narrow(Nibble(block.nibbles, i));
}

void Load(const BlockQ5_0& block, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  for (int i = 0; i < 32; ++i) {
    g->q[i] = Narrow((Nibble(block.nibbles, i) | Bit(block.fifth_bits, i) << 4) - 16);
  }
}

void Load(const BlockQ5_1& block, Group* g) {
  SetAddedMinimum(block.d, block.m, g);
  for (int i = 0; i < 32; ++i) {
    g->q[i] = Narrow(Nibble(block.nibbles, i) | Bit(block.fifth_bits, i) << 4);
  }
}

void Load(const BlockQ8_0& block, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  std::copy(block.q, block.q + 32, g->q);
}

void Load(const BlockQ8_KV& block, Group* g) {
  SetPlain(block.d, g);
  std::copy(block.q, block.q + 32, g->q);
}

void Load(const BlockIQ4_NL& block, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  for (int i = 0; i < 32; ++i) g->q[i] = kIq4Values[Nibble(block.nibbles, i)];
}

void Load(const BlockMXFP4& block, Group* g) {
  SetPlain(PowerOfTwo(std::clamp(block.e - 128, kMxfp4MinExponent, kMxfp4MaxExponent)), g);
  for (int i = 0; i < 32; ++i) g->q[i] = kMxfp4Values[Nibble(block.nibbles, i)];
}

// Below, `part` counts the eight groups of a 256-value block.

// Two-bit values: each run of 32 bytes holds four groups, from the low bits up.
int TwoBits(const uint8_t* q, int part, int i) {
  return (q[32 * (part / 4) + i] >> (2 * (part % 4))) & 3;
}

// Four-bit values: each run of 32 bytes holds two groups, low halves first.
int FourBits(const uint8_t* q, int part, int i) {
  return (q[32 * (part / 2) + i] >> (4 * (part % 2))) & 15;
}

void Load(const BlockQ2_K& block, int part, Group* g) {
  g->d = F16ToF32(block.d);
  g->dmin = F16ToF32(block.dmin);
  for (int h = 0; h < 2; ++h) {
    g->scale[h] = block.scales[2 * part + h] & 15;
    g->min[h] = block.scales[2 * part + h] >> 4;
  }
  for (int i = 0; i < 32; ++i) g->q[i] = Narrow(TwoBits(block.q, part, i));
}

// Scale `index` of 16: four low bits in the halves of bytes 0-7, two high bits in bytes 8-11.
int Q3Scale(const uint8_t* scales, int index) {
  const int low = index < 8 ? scales[index] & 15 : scales[index - 8] >> 4;
  const int high = (scales[8 + index % 4] >> (2 * (index / 4))) & 3;
  return low | high << 4;
}

void Load(const BlockQ3_K& block, int part, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  for (int h = 0; h < 2; ++h) g->scale[h] = Q3Scale(block.scales, 2 * part + h) - 32;
  for (int i = 0; i < 32; ++i) {
    const int third_bit = (block.third_bits[i] >> part) & 1;
    g->q[i] = Narrow((TwoBits(block.q, part, i) | third_bit << 2) - 4);
  }
}

// Q4_K and Q5_K: eight scales and eight minimums of six bits. The first four of each lie whole in
// bytes 0-3 and 4-7; of the last four, bytes 8-11 hold the low halves and the spare top bits of the
// first eight bytes the rest.
void SetScaleAndMin(const uint8_t* scales, int part, Group* g) {
  int scale, min;
  if (part < 4) {
    scale = scales[part] & 63;
    min = scales[part + 4] & 63;
  } else {
    scale = (scales[part + 4] & 15) | (scales[part - 4] >> 6) << 4;
    min = (scales[part + 4] >> 4) | (scales[part] >> 6) << 4;
  }
  g->scale[0] = g->scale[1] = scale;
  g->min[0] = g->min[1] = min;
}

void Load(const BlockQ4_K& block, int part, Group* g) {
  g->d = F16ToF32(block.d);
  g->dmin = F16ToF32(block.dmin);
  SetScaleAndMin(block.scales, part, g);
  for (int i = 0; i < 32; ++i) g->q[i] = Narrow(FourBits(block.q, part, i));
}

void Load(const BlockQ5_K& block, int part, Group* g) {
  g->d = F16ToF32(block.d);
  g->dmin = F16ToF32(block.dmin);
  SetScaleAndMin(block.scales, part, g);
  for (int i = 0; i < 32; ++i) {
    const int fifth_bit = (block.fifth_bits[i] >> part) & 1;
    g->q[i] = Narrow(FourBits(block.q, part, i) | fifth_bit << 4);
  }
}

// Q6_K: a half of 128 values has 64 bytes of low nibbles. Groups 0 and 1 of the half are the low
// halves of its first and second 32 bytes, groups 2 and 3 the high halves.
void Load(const BlockQ6_K& block, int part, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  for (int h = 0; h < 2; ++h) g->scale[h] = block.scales[2 * part + h];
  const uint8_t* low = block.low + 64 * (part / 4) + 32 * (part % 2);
  const int low_shift = 4 * (part % 4 / 2);
  for (int i = 0; i < 32; ++i) {
    const int low_bits = (low[i] >> low_shift) & 15;
    g->q[i] = Narrow((low_bits | TwoBits(block.high, part, i) << 4) - 32);
  }
}

void Load(const BlockIQ4_XS& block, int part, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  const int low = (block.scales_low[part / 2] >> (4 * (part % 2))) & 15;
  const int high = (block.scales_high >> (2 * part)) & 3;
  SetScale((low | high << 4) - 32, g);
  for (int i = 0; i < 32; ++i) g->q[i] = kIq4Values[Nibble(block.q + 16 * part, i)];
}

// A byte holds its base-3 digits as a fraction of 256, rounded up: multiplying by 3^digit modulo
// 256 drops the digits before, multiplying by 3 once more carries the wanted one into bit 8.
int TernaryDigit(uint8_t byte, int digit) {
  static constexpr uint8_t kPowersOfThree[5] = {1, 3, 9, 27, 81};
  const uint8_t rest = static_cast<uint8_t>(byte * kPowersOfThree[digit]);
  return (rest * 3) >> 8;
}

// Values 0-159 are five digits of 32 bytes, 160-239 five digits of 16, 240-255 four digits of 4.
void Load(const BlockTQ1_0& block, int part, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  for (int i = 0; i < 32; ++i) {
    const int value = 32 * part + i;
    int digit;
    if (value < 160) {
      digit = TernaryDigit(block.five[value % 32], value / 32);
    } else if (value < 240) {
      digit = TernaryDigit(block.five[32 + value % 16], (value - 160) / 16);
    } else {
      digit = TernaryDigit(block.four[value % 4], (value - 240) / 4);
    }
    g->q[i] = Narrow(digit - 1);
  }
}

void Load(const BlockTQ2_0& block, int part, Group* g) {
  SetPlain(F16ToF32(block.d), g);
  for (int i = 0; i < 32; ++i) g->q[i] = Narrow(TwoBits(block.q, part, i) - 1);
}

template <typename Block>
void LoadSmall(const void* row, int64_t index, Group* g) {
  Load(static_cast<const Block*>(row)[index], g);
}

template <typename Block>
void LoadSuper(const void* row, int64_t index, Group* g) {
  Load(static_cast<const Block*>(row)[index / kSuperGroups], static_cast<int>(index % kSuperGroups),
       g);
}

}  // namespace

void LoadGroup(Type type, const void* row, int64_t index, Group* group) {
  switch (type) {
    case Type::kQ4_0:
      return LoadSmall<BlockQ4_0>(row, index, group);
    case Type::kQ4_1:
      return LoadSmall<BlockQ4_1>(row, index, group);
    case Type::kQ5_0:
      return LoadSmall<BlockQ5_0>(row, index, group);
    case Type::kQ5_1:
      return LoadSmall<BlockQ5_1>(row, index, group);
    case Type::kQ8_0:
      return LoadSmall<BlockQ8_0>(row, index, group);
    case Type::kQ8_KV:
      return LoadSmall<BlockQ8_KV>(row, index, group);
    case Type::kIQ4_NL:
      return LoadSmall<BlockIQ4_NL>(row, index, group);
    case Type::kMXFP4:
      return LoadSmall<BlockMXFP4>(row, index, group);
    case Type::kQ2_K:
      return LoadSuper<BlockQ2_K>(row, index, group);
    case Type::kQ3_K:
      return LoadSuper<BlockQ3_K>(row, index, group);
    case Type::kQ4_K:
      return LoadSuper<BlockQ4_K>(row, index, group);
    case Type::kQ5_K:
      return LoadSuper<BlockQ5_K>(row, index, group);
    case Type::kQ6_K:
      return LoadSuper<BlockQ6_K>(row, index, group);
    case Type::kIQ4_XS:
      return LoadSuper<BlockIQ4_XS>(row, index, group);
    case Type::kTQ1_0:
      return LoadSuper<BlockTQ1_0>(row, index, group);
    case Type::kTQ2_0:
      return LoadSuper<BlockTQ2_0>(row, index, group);
    case Type::kF32:
    case Type::kF16:
    case Type::kBF16:
    case Type::kI32:
      break;
  }
  *group = Group{};
}

}  // namespace trine::quant
