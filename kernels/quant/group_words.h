// Decodes every quantised file format, four values at a time. The result is the numbers of a Group
// as bytes of words, not yet converted to floats. Uses integers alone and is constexpr, so that GPU
// kernels can call it too. Reads a row through a source, which knows how wide its loads may be.
#pragma once

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// The table that a type's nibbles are indices of.
enum class NibbleTable { kNone, kIq4, kMxfp4 };

// The parts of a Group's form that a format uses.
struct GroupForm {
  int zero = 0;          // subtracted from every byte
  bool scaled = false;   // has integer scales
  bool halves = false;   // has a scale for each 16 values
  bool minimum = false;  // has dmin and min
  NibbleTable table = NibbleTable::kNone;
};

static constexpr GroupForm FormOf(Type type) {
  switch (type) {
    case Type::kQ4_0:
      return {8, false, false, false};
    case Type::kQ5_0:
      return {16, false, false, false};
    case Type::kQ4_1:
    case Type::kQ5_1:
      return {0, false, false, true};
    case Type::kQ2_K:
      return {0, true, true, true};
    case Type::kQ3_K:
      return {4, true, true, false};
    case Type::kQ4_K:
    case Type::kQ5_K:
      return {0, true, false, true};
    case Type::kQ6_K:
      return {32, true, true, false};
    case Type::kIQ4_NL:
      return {0, false, false, false, NibbleTable::kIq4};
    case Type::kIQ4_XS:
      return {0, true, false, false, NibbleTable::kIq4};
    case Type::kMXFP4:
      return {0, false, false, false, NibbleTable::kMxfp4};
    case Type::kTQ1_0:
    case Type::kTQ2_0:
      return {1, false, false, false};
    default:
      return {};
  }
}

// 32 values. Value i is byte i % 4 of word i / 4, minus the form's `zero`, or an index into its
// `table`.
struct GroupWords {
  uint32_t q[8] = {};
  uint16_t d = 0, dmin = 0;   // bits of f16; MXFP4: d is the exponent e
  int32_t scale[2] = {1, 1};  // the scale of each half
  int32_t min[2] = {-1, -1};  // used by formats with minimums
};

// Returns MXFP4's scale as the bits of a float: 2^clamp(e - 128, -46, 50).
static constexpr uint32_t Mxfp4ScaleBits(uint32_t e) {
  const int exponent = static_cast<int>(e) - 128;
  const int clamped = exponent < kMxfp4MinExponent   ? kMxfp4MinExponent
                      : exponent > kMxfp4MaxExponent ? kMxfp4MaxExponent
                                                     : exponent;
  return static_cast<uint32_t>(clamped + 127) << 23;
}

// ---- Sources: 16-bit words of a row, counted from its beginning ------------------------------

// A row that begins at a multiple of two bytes.
struct HalfSource {
  const uint16_t* row;

  constexpr uint32_t Half(uint32_t at) const { return row[at]; }
  // REQUIRES: `at` is even, in blocks whose size is a multiple of four.
  constexpr uint32_t Word(uint32_t at) const {
    return static_cast<uint32_t>(row[at]) | static_cast<uint32_t>(row[at + 1]) << 16;
  }
};

// A row that begins at a multiple of four bytes, as do all its blocks.
struct WordSource {
  const uint32_t* row;

  constexpr uint32_t Half(uint32_t at) const {
    return (row[at >> 1] >> (16 * (at & 1u))) & 0xffffu;
  }
  constexpr uint32_t Word(uint32_t at) const { return row[at >> 1]; }
};

// A row of MXFP4, whose blocks of 17 bytes begin at any byte.
struct ByteSource {
  const uint8_t* row;
};

// ---- Pieces ------------------------------------------------------------------------------------

// Reads the 16 bytes at `at` into four words of q, beginning with word `first`.
template <class Source>
static constexpr void TakeWords(const Source& source, uint32_t at, int first, uint32_t shift,
                                uint32_t mask, GroupWords* g) {
  for (uint32_t i = 0; i < 4; ++i) {
    g->q[static_cast<uint32_t>(first) + i] = (source.Word(at + 2 * i) >> shift) & mask;
  }
}
// Reads as TakeWords does, but adds the bits `above` the bits that are there.
template <class Source>
static constexpr void AddWords(const Source& source, uint32_t at, int first, uint32_t shift,
                               uint32_t mask, uint32_t above, GroupWords* g) {
  for (uint32_t i = 0; i < 4; ++i) {
    g->q[static_cast<uint32_t>(first) + i] |= ((source.Word(at + 2 * i) >> shift) & mask) << above;
  }
}

// Splits the nibbles of 32 values: the first 16 values are the low nibbles.
static constexpr void SetNibbles(uint32_t word, int i, GroupWords* g) {
  g->q[i] = word & 0x0f0f0f0fu;
  g->q[i + 4] = (word >> 4) & 0x0f0f0f0fu;
}
template <class Source>
static constexpr void TakeNibbles(const Source& source, uint32_t at, GroupWords* g) {
  for (int i = 0; i < 4; ++i) SetNibbles(source.Word(at + 2 * static_cast<uint32_t>(i)), i, g);
}

// Moves bits 0 to 3 to the low ends of four bytes.
static constexpr uint32_t SpreadBits(uint32_t bits) {
  return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

// Reads a scale and a minimum of Q4_K or Q5_K, which have eight each, of six bits, in three words.
// The first four of each are in the first two words. Of the last four, the third word holds the low
// halves, and the spare top bits of the first two words hold the rest.
static constexpr void SetScaleAndMin(uint32_t first, uint32_t second, uint32_t third, uint32_t part,
                                     GroupWords* g) {
  const uint32_t shift = 8 * (part & 3u);
  const uint32_t a = (first >> shift) & 255u, b = (second >> shift) & 255u;
  const uint32_t c = (third >> shift) & 255u;
  const bool whole = part < 4;
  g->scale[0] = g->scale[1] = static_cast<int32_t>(whole ? a & 63u : (c & 15u) | (a >> 6) << 4);
  g->min[0] = g->min[1] = static_cast<int32_t>(whole ? b & 63u : c >> 4 | (b >> 6) << 4);
}

static constexpr int32_t SignedByte(uint32_t word, int index) {
  return static_cast<int8_t>(word >> (8 * index));
}

// Extracts a base-3 digit of each of four bytes; `power` is 3^digit. A byte holds its digits as a
// fraction of 256, rounded up: multiplying by 3^digit modulo 256 drops the digits before, and
// multiplying by 3 once more carries the wanted one into bit 8.
static constexpr uint32_t TernaryDigits(uint32_t bytes, uint32_t power) {
  const uint32_t even = (((bytes & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u;
  const uint32_t odd = ((((bytes >> 8) & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u;
  return ((even >> 8) & 0x00ff00ffu) | (odd & 0xff00ff00u);
}

// ---- Formats -----------------------------------------------------------------------------------

// Reads a block of 32 values, which begins `at` 16-bit words into the row.
template <Type kType, class Source>
static constexpr void TakeBlock(const Source& source, uint32_t at, GroupWords* g) {
  g->d = static_cast<uint16_t>(source.Half(at));
  at += 1;
  if constexpr (kType == Type::kQ4_1 || kType == Type::kQ5_1) {
    g->dmin = static_cast<uint16_t>(source.Half(at));
    at += 1;
  }
  if constexpr (kType == Type::kQ8_0) {
    TakeWords(source, at, 0, 0, 0xffffffffu, g);
    TakeWords(source, at + 8, 4, 0, 0xffffffffu, g);
  } else if constexpr (kType == Type::kQ5_0 || kType == Type::kQ5_1) {
    const uint32_t fifth_bits = source.Word(at);  // bit i belongs to value i
    TakeNibbles(source, at + 2, g);
    for (int i = 0; i < 8; ++i) g->q[i] |= SpreadBits(fifth_bits >> (4 * i)) << 4;
  } else {
    TakeNibbles(source, at, g);
  }
}

// Reads part `part` of the eight parts of a block of 256 values.
//
// Two-bit values: each run of 32 bytes holds four parts, from the low bits up. Four-bit values: two
// parts, low halves first. Q6_K: in the 64 bytes of low nibbles of each half, parts 0 and 1 are the
// low halves of the first and the second 32 bytes, parts 2 and 3 the high halves.
template <Type kType, class Source>
static constexpr void TakePart(const Source& source, uint32_t at, uint32_t part, GroupWords* g) {
  const uint32_t upper = part >> 2;           // half of the block
  const uint32_t two_bits = 2 * (part & 3u);  // the position of the part's two-bit values in a byte
  if constexpr (kType == Type::kQ2_K) {
    const uint32_t scales = source.Half(at + part);
    g->d = static_cast<uint16_t>(source.Half(at + 40));
    g->dmin = static_cast<uint16_t>(source.Half(at + 41));
    g->scale[0] = static_cast<int32_t>(scales & 15u);
    g->scale[1] = static_cast<int32_t>((scales >> 8) & 15u);
    g->min[0] = static_cast<int32_t>((scales >> 4) & 15u);
    g->min[1] = static_cast<int32_t>(scales >> 12);
    TakeWords(source, at + 8 + 16 * upper, 0, two_bits, 0x03030303u, g);
    TakeWords(source, at + 16 + 16 * upper, 4, two_bits, 0x03030303u, g);
  } else if constexpr (kType == Type::kQ3_K) {
    // 16 scales: four low bits in the halves of bytes 0-7, two high bits in bytes 8-11.
    const uint32_t low = source.Half(at + 48 + (part & 3u)) >> (4 * upper);
    const uint32_t high = source.Half(at + 52 + (part & 1u)) >> (2 * (part >> 1));
    g->d = static_cast<uint16_t>(source.Half(at + 54));
    g->scale[0] = static_cast<int32_t>((low & 15u) | (high & 3u) << 4) - 32;
    g->scale[1] = static_cast<int32_t>(((low >> 8) & 15u) | ((high >> 8) & 3u) << 4) - 32;
    TakeWords(source, at + 16 + 16 * upper, 0, two_bits, 0x03030303u, g);
    TakeWords(source, at + 24 + 16 * upper, 4, two_bits, 0x03030303u, g);
    AddWords(source, at, 0, part, 0x01010101u, 2, g);
    AddWords(source, at + 8, 4, part, 0x01010101u, 2, g);
  } else if constexpr (kType == Type::kQ4_K || kType == Type::kQ5_K) {
    const uint32_t from = at + (kType == Type::kQ5_K ? 24 : 8) + 16 * (part >> 1);
    const uint32_t shift = 4 * (part & 1u);
    g->d = static_cast<uint16_t>(source.Half(at));
    g->dmin = static_cast<uint16_t>(source.Half(at + 1));
    SetScaleAndMin(source.Word(at + 2), source.Word(at + 4), source.Word(at + 6), part, g);
    TakeWords(source, from, 0, shift, 0x0f0f0f0fu, g);
    TakeWords(source, from + 8, 4, shift, 0x0f0f0f0fu, g);
    if constexpr (kType == Type::kQ5_K) {
      AddWords(source, at + 8, 0, part, 0x01010101u, 4, g);
      AddWords(source, at + 16, 4, part, 0x01010101u, 4, g);
    }
  } else if constexpr (kType == Type::kQ6_K) {
    const uint32_t scales = source.Half(at + 96 + part);
    const uint32_t from = at + 32 * upper + 16 * (part & 1u), shift = 4 * ((part >> 1) & 1u);
    g->d = static_cast<uint16_t>(source.Half(at + 104));
    g->scale[0] = SignedByte(scales, 0);
    g->scale[1] = SignedByte(scales, 1);
    TakeWords(source, from, 0, shift, 0x0f0f0f0fu, g);
    TakeWords(source, from + 8, 4, shift, 0x0f0f0f0fu, g);
    AddWords(source, at + 64 + 16 * upper, 0, two_bits, 0x03030303u, 4, g);
    AddWords(source, at + 72 + 16 * upper, 4, two_bits, 0x03030303u, 4, g);
  } else if constexpr (kType == Type::kIQ4_XS) {
    const uint32_t low = (source.Half(at + 2 + upper) >> (4 * (part & 3u))) & 15u;
    const uint32_t high = (source.Half(at + 1) >> (2 * part)) & 3u;
    g->d = static_cast<uint16_t>(source.Half(at));
    g->scale[0] = g->scale[1] = static_cast<int32_t>(low | high << 4) - 32;
    TakeNibbles(source, at + 4 + 8 * part, g);
  } else if constexpr (kType == Type::kTQ2_0) {
    g->d = static_cast<uint16_t>(source.Half(at + 32));
    TakeWords(source, at + 16 * upper, 0, two_bits, 0x03030303u, g);
    TakeWords(source, at + 16 * upper + 8, 4, two_bits, 0x03030303u, g);
  } else {
    // TQ1_0: parts 0 to 4 are the five digits of 32 bytes. Then come the five digits of 16 bytes
    // and, for the last 16 values, the four digits of 4 bytes.
    const auto power = [](uint32_t digit) {
      return digit == 0 ? 1u : digit == 1 ? 3u : digit == 2 ? 9u : digit == 3 ? 27u : 81u;
    };
    const bool five = part < 5;
    const uint32_t digit = five ? part : 2 * (part - 5);
    g->d = static_cast<uint16_t>(source.Half(at + 26));
    TakeWords(source, five ? at : at + 16, 0, 0, 0xffffffffu, g);
    for (int i = 0; i < 4; ++i) g->q[i] = TernaryDigits(g->q[i], power(digit));
    if (part < 7) {
      TakeWords(source, five ? at + 8 : at + 16, 4, 0, 0xffffffffu, g);
      for (int i = 4; i < 8; ++i) {
        g->q[i] = TernaryDigits(g->q[i], power(five ? digit : digit + 1));
      }
    } else {
      const uint32_t four = source.Word(at + 24);
      for (int i = 4; i < 8; ++i) {
        g->q[i] = TernaryDigits(four, power(static_cast<uint32_t>(i) - 4));
      }
    }
  }
}

// Reads values [32 * index, 32 * index + 32) of a row. REQUIRES: the row is below 2^32 bytes.
template <Type kType, class Source>
static constexpr GroupWords TakeGroup(const Source& source, uint32_t index) {
  GroupWords g;
  if constexpr (kType == Type::kMXFP4) {
    const uint8_t* block = source.row + uint32_t{sizeof(BlockMXFP4)} * index;
    g.d = block[0];
    for (int i = 0; i < 4; ++i) {
      const uint8_t* b = block + 1 + 4 * i;
      SetNibbles(static_cast<uint32_t>(b[0]) | static_cast<uint32_t>(b[1]) << 8 |
                     static_cast<uint32_t>(b[2]) << 16 | static_cast<uint32_t>(b[3]) << 24,
                 i, &g);
    }
  } else {
    constexpr uint32_t kBytes = kType == Type::kQ4_0     ? sizeof(BlockQ4_0)
                                : kType == Type::kQ4_1   ? sizeof(BlockQ4_1)
                                : kType == Type::kQ5_0   ? sizeof(BlockQ5_0)
                                : kType == Type::kQ5_1   ? sizeof(BlockQ5_1)
                                : kType == Type::kQ8_0   ? sizeof(BlockQ8_0)
                                : kType == Type::kIQ4_NL ? sizeof(BlockIQ4_NL)
                                : kType == Type::kQ2_K   ? sizeof(BlockQ2_K)
                                : kType == Type::kQ3_K   ? sizeof(BlockQ3_K)
                                : kType == Type::kQ4_K   ? sizeof(BlockQ4_K)
                                : kType == Type::kQ5_K   ? sizeof(BlockQ5_K)
                                : kType == Type::kQ6_K   ? sizeof(BlockQ6_K)
                                : kType == Type::kIQ4_XS ? sizeof(BlockIQ4_XS)
                                : kType == Type::kTQ1_0  ? sizeof(BlockTQ1_0)
                                : kType == Type::kTQ2_0  ? sizeof(BlockTQ2_0)
                                                         : 0;
    static_assert(kBytes != 0, "not a quantised type of files");
    constexpr bool kSmall = kType == Type::kQ4_0 || kType == Type::kQ4_1 || kType == Type::kQ5_0 ||
                            kType == Type::kQ5_1 || kType == Type::kQ8_0 || kType == Type::kIQ4_NL;
    if constexpr (kSmall) {
      TakeBlock<kType>(source, kBytes / 2 * index, &g);
    } else {
      TakePart<kType>(source, kBytes / 2 * (index / kSuperGroups), index % kSuperGroups, &g);
    }
  }
  return g;
}

}  // namespace trine::quant
