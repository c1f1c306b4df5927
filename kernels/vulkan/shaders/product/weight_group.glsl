// Reads every quantised format of files as 32 small integers with their scales, the form of
// kernels/quant/dequantize.h. The numbers are the same bit for bit as there.
#include "product/weight_buffer.glsl"

// Value i of 32 is byte i % 4 of word i / 4: the first half in `low`, the second in `high`.
struct Group {
  uvec4 low, high;
  float d, dmin;
  ivec2 scale, min;  // scale and minimum of each half
};

const uvec4 kIq4Values = uvec4(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);

// Moves bits 0 to 3 to the low ends of four bytes.
uint SpreadBits(uint bits) { return ((bits & 15u) * 0x00204081u) & 0x01010101u; }

uvec4 SpreadBits16(uint bits) {
  return uvec4(SpreadBits(bits), SpreadBits(bits >> 4), SpreadBits(bits >> 8),
               SpreadBits(bits >> 12));
}

// Replaces each of the four bytes of `nibbles`, which is an index, by that byte of `table`.
uint LookUp(uvec4 table, uint nibbles) {
  uint result = 0;
  for (uint shift = 0; shift < 32; shift += 8) {
    const uint n = (nibbles >> shift) & 15u;
    const uint word = n < 8 ? (n < 4 ? table.x : table.y) : (n < 12 ? table.z : table.w);
    result |= ((word >> ((n & 3u) * 8u)) & 255u) << shift;
  }
  return result;
}

uvec4 LookUp(uvec4 table, uvec4 nibbles) {
  return uvec4(LookUp(table, nibbles.x), LookUp(table, nibbles.y), LookUp(table, nibbles.z),
               LookUp(table, nibbles.w));
}

// Returns four values of table B (docs/numerics.md) for four nibbles at once. With a, b, c the bits
// of a magnitude from the lowest, its value is a + 2b + 4c + c * (a + 2b + 2ab): 0 1 2 3 4 6 8 12.
// A zero gets no sign, so that no byte of the negation carries into the next.
uvec4 Mxfp4Values(uvec4 nibbles) {
  const uvec4 a = nibbles & 0x01010101u, b = (nibbles >> 1) & 0x01010101u;
  const uvec4 c = (nibbles >> 2) & 0x01010101u;
  const uvec4 magnitude =
      (nibbles & 0x07070707u) + (c & a) + (((c & b) + (c & a & b)) << 1);
  const uvec4 negative = (nibbles >> 3) & (a | b | c);
  return (magnitude ^ (negative * 255u)) + negative;
}

// Returns one ternary digit of each of four bytes: digit i for `power` = 3^i. Works as
// TernaryDigits of kernels/quant/group_words.h.
uint TernaryDigits(uint bytes, uint power) {
  const uint even = (((bytes & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u;
  const uint odd = ((((bytes >> 8) & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u;
  return ((even >> 8) & 0x00ff00ffu) | (odd & 0xff00ff00u);
}

uvec4 TernaryDigits(uvec4 bytes, uint power) {
  return uvec4(TernaryDigits(bytes.x, power), TernaryDigits(bytes.y, power),
               TernaryDigits(bytes.z, power), TernaryDigits(bytes.w, power));
}

int SignedByte(uint word, int index) { return bitfieldExtract(int(word), 8 * index, 8); }

void SetNibbles(uvec4 words, inout Group g) {
  g.low = words & 0x0f0f0f0fu;
  g.high = (words >> 4) & 0x0f0f0f0fu;
}

// Reads a scale and a minimum of Q4_K or Q5_K, which have eight each, of six bits, in three words.
void SetScaleAndMin(uint first, uint second, uint third, uint part, inout Group g) {
  const uint shift = 8 * (part & 3u);
  const uint a = (first >> shift) & 255u, b = (second >> shift) & 255u, c = (third >> shift) & 255u;
  const bool whole = part < 4;
  g.scale = ivec2(whole ? a & 63u : (c & 15u) | (a >> 6) << 4);
  g.min = ivec2(whole ? b & 63u : c >> 4 | (b >> 6) << 4);
}

// Reads a block of MXFP4. A block has 17 bytes and may begin at any byte.
void LoadMxfp4(uint at_byte, inout Group g) {
  const uint at = at_byte >> 1;
  uvec4 words;
  uint e;
  if ((at_byte & 1u) == 0) {
    e = Half(at) & 255u;
    for (uint i = 0; i < 4; ++i) {
      const uint next = at + 2 * i;
      words[i] = Half(next) >> 8 | Half(next + 1) << 8 | Half(next + 2) << 24;
    }
  } else {
    e = Half(at) >> 8;
    words = Words(at + 1);
  }
  // 2^clamp(e - 128, -46, 50)
  g.d = uintBitsToFloat(uint(clamp(int(e) - 1, 81, 177)) << 23);
  SetNibbles(words, g);
}

void LoadBlock32(uint row, uint block, inout Group g) {
  if (FORMAT == kMXFP4) {
    LoadMxfp4(row + 17 * block, g);
  } else {
    const uint halves = FORMAT == kQ4_1   ? 10
                        : FORMAT == kQ5_0 ? 11
                        : FORMAT == kQ5_1 ? 12
                        : FORMAT == kQ8_0 ? 17
                                          : 9;
    uint at = row / 2 + halves * block;
    g.d = FiniteF16(Half(at));
    at += 1;
    if (ADDED_MIN) {
      g.dmin = FiniteF16(Half(at));
      at += 1;
    }
    if (FORMAT == kQ8_0) {
      g.low = Words(at);
      g.high = Words(at + 8);
    } else if (FORMAT == kQ5_0 || FORMAT == kQ5_1) {
      const uint fifth_bits = Word(at);
      SetNibbles(Words(at + 2), g);
      g.low |= SpreadBits16(fifth_bits) << 4;
      g.high |= SpreadBits16(fifth_bits >> 16) << 4;
    } else {
      SetNibbles(Words(at), g);
    }
  }
  if (FORMAT == kIQ4_NL) {
    g.low = LookUp(kIq4Values, g.low);
    g.high = LookUp(kIq4Values, g.high);
  } else if (FORMAT == kMXFP4) {
    g.low = Mxfp4Values(g.low);
    g.high = Mxfp4Values(g.high);
  }
}

void LoadTernary(uint at, uint part, inout Group g) {
  if (FORMAT == kTQ2_0) {
    const uint shift = 2 * (part & 3u), from = at + 16 * (part >> 2);
    g.d = FiniteF16(Half(at + 32));
    g.low = (Words(from) >> shift) & 0x03030303u;
    g.high = (Words(from + 8) >> shift) & 0x03030303u;
    return;
  }
  const uint power = part == 0 ? 1 : part == 1 ? 3 : part == 2 ? 9 : part == 3 ? 27 : 81;
  g.d = FiniteF16(Half(at + 26));
  if (part < 5) {  // five digits of 32 bytes, then five of 16, then four of 4
    g.low = TernaryDigits(Words(at), power);
    g.high = TernaryDigits(Words(at + 8), power);
  } else {
    const uvec4 last = Words(at + 16);
    g.low = TernaryDigits(last, part == 5 ? 1 : part == 6 ? 9 : 81);
    if (part < 7) {
      g.high = TernaryDigits(last, part == 5 ? 3 : 27);
    } else {
      const uint four = Word(at + 24);
      g.high = uvec4(TernaryDigits(four, 1), TernaryDigits(four, 3), TernaryDigits(four, 9),
                     TernaryDigits(four, 27));
    }
  }
}

// Reads part `part` of the eight parts of a block of 256 values that begins at 16-bit word `at`.
void LoadPart(uint at, uint part, inout Group g) {
  const uint upper = part >> 2;  // number of the half of the block
  // shift of two-bit values: a run of 32 bytes has four parts
  const uint two_bits = 2 * (part & 3u);
  if (FORMAT == kQ2_K) {
    const uint scales = Half(at + part);
    g.d = FiniteF16(Half(at + 40));
    g.dmin = FiniteF16(Half(at + 41));
    g.scale = ivec2(scales & 15u, (scales >> 8) & 15u);
    g.min = ivec2((scales >> 4) & 15u, scales >> 12);
    g.low = (Words(at + 8 + 16 * upper) >> two_bits) & 0x03030303u;
    g.high = (Words(at + 16 + 16 * upper) >> two_bits) & 0x03030303u;
  } else if (FORMAT == kQ3_K) {
    const uint low = Half(at + 48 + (part & 3u)) >> (4 * upper);
    const uint high = Half(at + 52 + (part & 1u)) >> (2 * (part >> 1));
    g.d = FiniteF16(Half(at + 54));
    g.scale = ivec2((low & 15u) | (high & 3u) << 4, ((low >> 8) & 15u) | ((high >> 8) & 3u) << 4);
    g.scale -= 32;
    g.low = (Words(at + 16 + 16 * upper) >> two_bits) & 0x03030303u;
    g.high = (Words(at + 24 + 16 * upper) >> two_bits) & 0x03030303u;
    g.low |= ((Words(at) >> part) & 0x01010101u) << 2;
    g.high |= ((Words(at + 8) >> part) & 0x01010101u) << 2;
  } else if (FORMAT == kQ4_K || FORMAT == kQ5_K) {
    const uint from = at + (FORMAT == kQ5_K ? 24 : 8) + 16 * (part >> 1);
    const uint shift = 4 * (part & 1u);
    g.d = FiniteF16(Half(at));
    g.dmin = FiniteF16(Half(at + 1));
    SetScaleAndMin(Word(at + 2), Word(at + 4), Word(at + 6), part, g);
    g.low = (Words(from) >> shift) & 0x0f0f0f0fu;
    g.high = (Words(from + 8) >> shift) & 0x0f0f0f0fu;
    if (FORMAT == kQ5_K) {
      g.low |= ((Words(at + 8) >> part) & 0x01010101u) << 4;
      g.high |= ((Words(at + 16) >> part) & 0x01010101u) << 4;
    }
  } else if (FORMAT == kQ6_K) {
    const uint scales = Half(at + 96 + part);
    const uint from = at + 32 * upper + 16 * (part & 1u), shift = 4 * ((part >> 1) & 1u);
    g.d = FiniteF16(Half(at + 104));
    g.scale = ivec2(SignedByte(scales, 0), SignedByte(scales, 1));
    g.low = (Words(from) >> shift) & 0x0f0f0f0fu;
    g.high = (Words(from + 8) >> shift) & 0x0f0f0f0fu;
    g.low |= ((Words(at + 64 + 16 * upper) >> two_bits) & 0x03030303u) << 4;
    g.high |= ((Words(at + 72 + 16 * upper) >> two_bits) & 0x03030303u) << 4;
  } else if (FORMAT == kIQ4_XS) {
    const uint low = (Half(at + 2 + upper) >> (4 * (part & 3u))) & 15u;
    const uint high = (Half(at + 1) >> (2 * part)) & 3u;
    g.d = FiniteF16(Half(at));
    g.scale = ivec2(int(low | high << 4) - 32);
    SetNibbles(Words(at + 4 + 8 * part), g);
    g.low = LookUp(kIq4Values, g.low);
    g.high = LookUp(kIq4Values, g.high);
  } else {
    LoadTernary(at, part, g);
  }
}

// Returns weights [32 * block, 32 * block + 32) of the row that begins at byte `row`.
Group LoadFileGroup(uint row, uint block) {
  Group g;
  g.d = g.dmin = 0.0;
  g.scale = ivec2(1);
  g.min = ivec2(-1);
  if (FORMAT < kQ2_K || FORMAT == kIQ4_NL || FORMAT == kMXFP4) {
    LoadBlock32(row, block, g);
  } else {
    const uint halves = FORMAT == kQ2_K    ? 42
                        : FORMAT == kQ3_K  ? 55
                        : FORMAT == kQ4_K  ? 72
                        : FORMAT == kQ5_K  ? 88
                        : FORMAT == kQ6_K  ? 105
                        : FORMAT == kIQ4_XS ? 68
                        : FORMAT == kTQ1_0 ? 27
                                           : 33;
    LoadPart(row / 2 + halves * (block >> 3), block & 7u, g);
  }
  return g;
}
