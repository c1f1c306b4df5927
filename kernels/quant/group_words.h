// Every quantised format of files taken apart four values at a time: the numbers of group.h as
// bytes of words, before anything is converted. Integers alone, and constexpr, so that GPUs'
// kernels can call it too: formats are written once. A row is read through a source, which knows
// how wide its loads may be.

#ifndef TRINE_KERNELS_QUANT_GROUP_WORDS_H_
#define TRINE_KERNELS_QUANT_GROUP_WORDS_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// What the bytes of a nibble type stand for.
enum class NibbleTable { kNone, kIq4, kMxfp4 };

// What a format has of the form of group.h.
struct GroupForm {
  int zero = 0;          // subtracted from every byte
  bool scaled = false;   // integer scales
  bool halves = false;   // of their own for each 16 values
  bool minimum = false;  // dmin and min
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

// Value i is byte i % 4 of word i / 4, less the format's zero; nibbles of a table are not looked
// up.
struct GroupWords {
  uint32_t q[8] = {};
  uint16_t d = 0, dmin = 0;   // bits of f16; MXFP4: d is the exponent e
  int32_t scale[2] = {1, 1};  // of each half
  int32_t min[2] = {-1, -1};  // where the format has minimums
};

// MXFP4's scale as the bits of a float: 2^clamp(e - 128, -46, 50).
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
  // From an even place on in blocks whose size is a multiple of four.
  constexpr uint32_t Word(uint32_t at) const {
    return static_cast<uint32_t>(row[at]) | static_cast<uint32_t>(row[at + 1]) << 16;
  }
};

// The same of a row that begins at a multiple of four, as do all its blocks.
struct WordSource {
  const uint32_t* row;

  constexpr uint32_t Half(uint32_t at) const {
    return (row[at >> 1] >> (16 * (at & 1u))) & 0xffffu;
  }
  constexpr uint32_t Word(uint32_t at) const { return row[at >> 1]; }
};

// Of MXFP4, whose blocks of 17 bytes begin at any byte.
struct ByteSource {
  const uint8_t* row;
};

// ---- Pieces ------------------------------------------------------------------------------------

// Sixteen bytes from a place on, as words of q from `first` on.
template <class Source>
static constexpr void TakeWords(const Source& source, uint32_t at, int first, uint32_t shift,
                                uint32_t mask, GroupWords* g) {
  for (uint32_t i = 0; i < 4; ++i) {
    g->q[static_cast<uint32_t>(first) + i] = (source.Word(at + 2 * i) >> shift) & mask;
  }
}
// The same, put above what is there.
template <class Source>
static constexpr void AddWords(const Source& source, uint32_t at, int first, uint32_t shift,
                               uint32_t mask, uint32_t above, GroupWords* g) {
  for (uint32_t i = 0; i < 4; ++i) {
    g->q[static_cast<uint32_t>(first) + i] |= ((source.Word(at + 2 * i) >> shift) & mask) << above;
  }
}

// Nibbles of 32 values: those of the first 16 are the low ones.
static constexpr void SetNibbles(uint32_t word, int i, GroupWords* g) {
  g->q[i] = word & 0x0f0f0f0fu;
  g->q[i + 4] = (word >> 4) & 0x0f0f0f0fu;
}
template <class Source>
static constexpr void TakeNibbles(const Source& source, uint32_t at, GroupWords* g) {
  for (int i = 0; i < 4; ++i) SetNibbles(source.Word(at + 2 * static_cast<uint32_t>(i)), i, g);
}

// Bits 0 to 3 to the low ends of four bytes.
static constexpr uint32_t SpreadBits(uint32_t bits) {
  return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

// Q4_K and Q5_K: eight scales and eight minimums of six bits in three words. The first four of each
// lie whole in the first two words; of the last four, the third word holds the low halves and the
// spare top bits of the first two the rest.
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

// A byte holds its base-3 digits as a fraction of 256, rounded up: multiplying by 3^digit modulo
// 256 drops the digits before, multiplying by 3 once more carries the wanted one into bit 8. Here
// of four bytes, `power` being 3^digit.
static constexpr uint32_t TernaryDigits(uint32_t bytes, uint32_t power) {
  const uint32_t even = (((bytes & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u;
  const uint32_t odd = ((((bytes >> 8) & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u;
  return ((even >> 8) & 0x00ff00ffu) | (odd & 0xff00ff00u);
}

// ---- Formats
// -------------------------------------------------------------------------------------

// Blocks of 32 values. `at` counts 16-bit words to the block.
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

// Part `part` of the eight of a block of 256 values.
//
// Two-bit values: each run of 32 bytes holds four parts, from the low bits up. Four-bit values: two
// parts, low halves first. Q6_K: of a half's 64 bytes of low nibbles, parts 0 and 1 are the low
// halves of the first and the second 32, parts 2 and 3 the high halves.
template <Type kType, class Source>
static constexpr void TakePart(const Source& source, uint32_t at, uint32_t part, GroupWords* g) {
  const uint32_t upper = part >> 2;           // half of the block
  const uint32_t two_bits = 2 * (part & 3u);  // where two-bit values of the part are
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
    // TQ1_0: parts 0 to 4 are five digits of 32 bytes; then come five digits of 16 bytes and, the
    // last 16 values, four digits of 4.
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

// Values [32 * index, 32 * index + 32) of a row. Rows are shorter than 2^32 bytes.
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

#endif  // TRINE_KERNELS_QUANT_GROUP_WORDS_H_
