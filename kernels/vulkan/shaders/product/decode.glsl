// Decodes one value of a row of weights of any type (kernels/quant/dequantize.cc):
//
//   weight = (d * float(scale)) * float(q) - dmin * float(min)
//
// with each step rounded. The includer defines, before this file, `uint WeightByte(uint at)`, the
// byte `at` of the table's binding; rows may begin at any byte. Types are the numbers of
// quant::Type.
#include "half.glsl"

const uint kTypeF32 = 1, kTypeF16 = 2, kTypeBf16 = 3;
const uint kTypeQ4_0 = 16, kTypeQ4_1 = 17, kTypeQ5_0 = 18, kTypeQ5_1 = 19, kTypeQ8_0 = 20;
const uint kTypeQ8Kv = 21;
const uint kTypeQ2_K = 24, kTypeQ3_K = 25, kTypeQ4_K = 26, kTypeQ5_K = 27, kTypeQ6_K = 28;
const uint kTypeIq4Nl = 32, kTypeIq4Xs = 33;
const uint kTypeTq1_0 = 40, kTypeTq2_0 = 41, kTypeMxfp4 = 48;

uint WeightHalf(uint at) { return WeightByte(at) | WeightByte(at + 1u) << 8; }
uint WeightWord(uint at) { return WeightHalf(at) | WeightHalf(at + 2u) << 16; }
float WeightF16(uint at) { return F16ToF32(WeightHalf(at)); }
int SignedByte(uint value) { return bitfieldExtract(int(value), 0, 8); }

// The numbers that make one value by the formula above.
struct Quantum {
  float d, dmin;
  int scale, min, q;
};

Quantum Plain(float d, int q) { return Quantum(d, 0.0, 1, 0, q); }
Quantum Scaled(float d, int scale, int q) { return Quantum(d, 0.0, scale, 0, q); }
// Returns the quantum of d*q + m, which is d*q - m*(-1).
Quantum Raised(float d, float m, int q) { return Quantum(d, m, 1, -1, q); }

// Returns value i of a 32-value block: values 0-15 are the low halves of its bytes, 16-31 the high.
int Nibble(uint nibbles, uint i) {
  const uint value = WeightByte(nibbles + (i & 15u));
  return int(i < 16u ? value & 15u : value >> 4);
}

int FifthBit(uint bits, uint i) { return int((WeightByte(bits + i / 8u) >> (i % 8u)) & 1u) << 4; }

const int kIq4Values[16] =
    int[](-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
const int kMxfp4Values[16] = int[](0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);

float Mxfp4Scale(uint e) {
  return uintBitsToFloat(uint(clamp(int(e) - 128, -46, 50) + 127) << 23);
}

// Below, `part` numbers the eight groups of 32 of a 256-value block, and i the values of a group.

// Each run of 32 bytes holds four groups of two-bit values, from the low bits up.
int TwoBits(uint q, uint part, uint i) {
  return int((WeightByte(q + 32u * (part / 4u) + i) >> (2u * (part % 4u))) & 3u);
}

// Each run of 32 bytes holds two groups of four-bit values, low halves first.
int FourBits(uint q, uint part, uint i) {
  return int((WeightByte(q + 32u * (part / 2u) + i) >> (4u * (part % 2u))) & 15u);
}

// Q2_K: scales[16], q[64], d, dmin.
Quantum DecodeQ2_K(uint block, uint part, uint i) {
  const uint scales = WeightByte(block + 2u * part + i / 16u);
  return Quantum(WeightF16(block + 80u), WeightF16(block + 82u), int(scales & 15u),
                 int(scales >> 4), TwoBits(block + 16u, part, i));
}

// Q3_K: third_bits[32], q[64], scales[12], d. The four low bits of 16 scales are in the halves of
// bytes 0-7, the two high bits in bytes 8-11.
Quantum DecodeQ3_K(uint block, uint part, uint i) {
  const uint index = 2u * part + i / 16u, scales = block + 96u;
  const uint low_byte = WeightByte(scales + (index & 7u));
  const uint low = index < 8u ? low_byte & 15u : low_byte >> 4;
  const uint high = (WeightByte(scales + 8u + index % 4u) >> (2u * (index / 4u))) & 3u;
  const int third_bit = int((WeightByte(block + i) >> part) & 1u);
  const int q = (TwoBits(block + 32u, part, i) | third_bit << 2) - 4;
  return Scaled(WeightF16(block + 108u), int(low | high << 4) - 32, q);
}

// Q4_K and Q5_K: d, dmin, scales[12]. Eight scales and eight minimums of six bits: bytes 0-3 and
// 4-7 hold the first four of each whole. Bytes 8-11 hold the low halves of the last four, and the
// spare top bits of the first eight bytes hold the rest.
Quantum DecodeScaleAndMin(uint block, uint part, int q) {
  const uint scales = block + 4u;
  uint scale, least;
  if (part < 4u) {
    scale = WeightByte(scales + part) & 63u;
    least = WeightByte(scales + part + 4u) & 63u;
  } else {
    const uint low = WeightByte(scales + part + 4u);
    scale = (low & 15u) | (WeightByte(scales + part - 4u) >> 6) << 4;
    least = (low >> 4) | (WeightByte(scales + part) >> 6) << 4;
  }
  return Quantum(WeightF16(block), WeightF16(block + 2u), int(scale), int(least), q);
}

// Q5_K has fifth_bits[32] before its q.
Quantum DecodeQ5_K(uint block, uint part, uint i) {
  const int fifth_bit = int((WeightByte(block + 16u + i) >> part) & 1u);
  return DecodeScaleAndMin(block, part, FourBits(block + 48u, part, i) | fifth_bit << 4);
}

// Q6_K: low[128], high[64], scales[16], d. In each half of 128 values, groups 0 and 1 are the low
// halves of its first and second 32 bytes, groups 2 and 3 the high halves.
Quantum DecodeQ6_K(uint block, uint part, uint i) {
  const uint low = WeightByte(block + 64u * (part / 4u) + 32u * (part % 2u) + i);
  const int low_bits = int((low >> (4u * (part % 4u / 2u))) & 15u);
  const int q = (low_bits | TwoBits(block + 128u, part, i) << 4) - 32;
  return Scaled(WeightF16(block + 208u), SignedByte(WeightByte(block + 192u + 2u * part + i / 16u)),
                q);
}

// IQ4_XS: d, scales_high (16 bits), scales_low[4], q[128].
Quantum DecodeIq4Xs(uint block, uint part, uint i) {
  const uint low = (WeightByte(block + 4u + part / 2u) >> (4u * (part % 2u))) & 15u;
  const uint high = (WeightHalf(block + 2u) >> (2u * part)) & 3u;
  return Scaled(WeightF16(block), int(low | high << 4) - 32,
                kIq4Values[Nibble(block + 8u + 16u * part, i)]);
}

// A byte holds its base-3 digits as a fraction of 256, rounded up.
int TernaryDigit(uint at, uint digit) {
  uint power = 1u;
  for (uint i = 0u; i < digit; ++i) power *= 3u;
  return int((((WeightByte(at) * power) & 255u) * 3u) >> 8);
}

// TQ1_0: five[48], four[4], d. Values 0-159 are five digits of 32 bytes, 160-239 five digits of 16,
// 240-255 four digits of 4.
Quantum DecodeTq1_0(uint block, uint part, uint i) {
  const uint value = 32u * part + i;
  int digit;
  if (value < 160u) {
    digit = TernaryDigit(block + value % 32u, value / 32u);
  } else if (value < 240u) {
    digit = TernaryDigit(block + 32u + value % 16u, (value - 160u) / 16u);
  } else {
    digit = TernaryDigit(block + 48u + value % 4u, (value - 240u) / 4u);
  }
  return Plain(WeightF16(block + 52u), digit - 1);
}

Quantum DecodeQuantum(uint type, uint row, uint value) {
  const uint group = value / 32u, i = value % 32u;
  const uint super = group / 8u, part = group % 8u;
  uint block;
  switch (type) {
    case kTypeQ4_0:
      block = row + 18u * group;
      return Plain(WeightF16(block), Nibble(block + 2u, i) - 8);
    case kTypeQ4_1:
      block = row + 20u * group;
      return Raised(WeightF16(block), WeightF16(block + 2u), Nibble(block + 4u, i));
    case kTypeQ5_0:
      block = row + 22u * group;
      return Plain(WeightF16(block), (Nibble(block + 6u, i) | FifthBit(block + 2u, i)) - 16);
    case kTypeQ5_1:
      block = row + 24u * group;
      return Raised(WeightF16(block), WeightF16(block + 2u),
                    Nibble(block + 8u, i) | FifthBit(block + 4u, i));
    case kTypeQ8_0:
      block = row + 34u * group;
      return Plain(WeightF16(block), SignedByte(WeightByte(block + 2u + i)));
    case kTypeQ8Kv:
      block = row + 36u * group;
      return Plain(uintBitsToFloat(WeightWord(block)), SignedByte(WeightByte(block + 4u + i)));
    case kTypeIq4Nl:
      block = row + 18u * group;
      return Plain(WeightF16(block), kIq4Values[Nibble(block + 2u, i)]);
    case kTypeMxfp4:
      block = row + 17u * group;
      return Plain(Mxfp4Scale(WeightByte(block)), kMxfp4Values[Nibble(block + 1u, i)]);
    case kTypeQ2_K:
      return DecodeQ2_K(row + 84u * super, part, i);
    case kTypeQ3_K:
      return DecodeQ3_K(row + 110u * super, part, i);
    case kTypeQ4_K:
      block = row + 144u * super;
      return DecodeScaleAndMin(block, part, FourBits(block + 16u, part, i));
    case kTypeQ5_K:
      return DecodeQ5_K(row + 176u * super, part, i);
    case kTypeQ6_K:
      return DecodeQ6_K(row + 210u * super, part, i);
    case kTypeIq4Xs:
      return DecodeIq4Xs(row + 136u * super, part, i);
    case kTypeTq1_0:
      return DecodeTq1_0(row + 54u * super, part, i);
    case kTypeTq2_0:
      block = row + 66u * super;
      return Plain(WeightF16(block + 64u), TwoBits(block, part, i) - 1);
    default:
      return Plain(0.0, 0);
  }
}

// Returns value `value` of the row that begins at byte `row`, not made canonical.
float DecodeWeight(uint type, uint row, uint value) {
  if (type == kTypeF32) return uintBitsToFloat(WeightWord(row + 4u * value));
  if (type == kTypeF16) return F16ToF32(WeightHalf(row + 2u * value));
  if (type == kTypeBf16) return Bf16ToF32(WeightHalf(row + 2u * value));
  const Quantum quantum = DecodeQuantum(type, row, value);
  precise float scaled = quantum.d * float(quantum.scale);
  precise float weight = scaled * float(quantum.q) - quantum.dmin * float(quantum.min);
  return weight;
}
