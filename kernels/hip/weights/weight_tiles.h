// Reads blocks of 32 weights for products of many columns, of every quantised type, in the file's
// layout or packed (packed_rows.h). A decoded block has eight words of signed bytes and factors.
//
// WeightForm<type, packed> has
//   kFactors           says which factors its blocks have
//   Raw                a block as it lies in memory, which can be loaded ahead
//   Fetch              loads a block of a row that has `blocks` blocks
//   Decode             turns Raw into a WeightBlock
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/words.h"
#include "kernels/quant/block_types.h"
#include "kernels/quant/group_words.h"

namespace trine::hip {

// weight[i] = d * scale[h] * q[i] - dmin * min[h], h = i / 16. A type has some of these factors:
enum class Factors {
  kPlain,           // d
  kMinimum,         // d and dmin; min is -1
  kScale32,         // d and one scale
  kScale32Minimum,  // one scale and one minimum
  kScale16,         // two scales
  kScale16Minimum,  // two scales and two minimums
};

struct WeightBlock {
  uint32_t q[8];
  float d, dmin;
  int32_t scale[2], min[2];  // of a type with one of each, only the first is set
};

template <quant::Type kType, bool kPacked>
struct WeightForm;

namespace weights {

TRINE_DEVICE float LowHalf(uint32_t word) {
  return HalfToFloat(static_cast<uint16_t>(word & 0xffffu));
}
TRINE_DEVICE float HighHalf(uint32_t word) {
  return HalfToFloat(static_cast<uint16_t>(word >> 16));
}

// Sets q from nibbles: value i is in the low half of byte i, value i + 16 in the high half.
TRINE_DEVICE void SetNibbles(const uint32_t* nibbles, WeightBlock* block) {
  TRINE_UNROLL
  for (int i = 0; i < 4; ++i) {
    block->q[i] = nibbles[i] & 0x0f0f0f0fu;
    block->q[i + 4] = nibbles[i] >> 4 & 0x0f0f0f0fu;
  }
}

TRINE_DEVICE void Subtract(uint32_t number, WeightBlock* block) {
  TRINE_UNROLL
  for (int i = 0; i < 8; ++i) block->q[i] = Less(block->q[i], number);
}

template <quant::NibbleTable kTable>
TRINE_DEVICE void LookUp(WeightBlock* block) {
  TRINE_UNROLL
  for (int i = 0; i < 8; ++i) block->q[i] = Pick16<kTable>(block->q[i]);
}

// Sets d, dmin and the 6-bit scale and minimum of Q4_K and Q5_K. group_words.h says where they are.
TRINE_DEVICE void SetHeaderK(const uint32_t* header, int part, WeightBlock* block) {
  block->d = LowHalf(header[0]);
  block->dmin = HighHalf(header[0]);
  const int shift = 8 * (part & 3);
  const uint32_t a = header[1] >> shift, b = header[2] >> shift, c = header[3] >> shift;
  const uint32_t upper_scale = (c & 15u) | (a >> 2 & 0x30u);
  const uint32_t upper_min = (c >> 4 & 15u) | (b >> 2 & 0x30u);
  block->scale[0] = static_cast<int32_t>(part < 4 ? a & 63u : upper_scale);
  block->min[0] = static_cast<int32_t>(part < 4 ? b & 63u : upper_min);
}

// Return the block of 256 values that has a block of 32, and its number among that block's eight.
TRINE_DEVICE const std::byte* Super(const std::byte* row, int block, int bytes) {
  return row + static_cast<int64_t>(block / quant::kSuperGroups) * bytes;
}
TRINE_DEVICE int PartOf(int block) { return block % quant::kSuperGroups; }

// A form whose blocks of kBytes bytes lie one after the other, at multiples of kAlign.
template <Factors kFactorsOf, int kBytes, int kAlign = 2>
struct FileBlock {
  static constexpr Factors kFactors = kFactorsOf;
  struct Raw {
    uint32_t words[(kBytes + 3) / 4];
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    LoadBytes<kBytes, kAlign>(row + static_cast<int64_t>(block) * kBytes, raw->words);
  }
};

}  // namespace weights

// ---- Blocks of 32 values, in a file ----------------------------------------------------------

template <>
struct WeightForm<quant::Type::kQ4_0, false> : weights::FileBlock<Factors::kPlain, 18> {
  // Returns the bytes after the scale, which is a half at the beginning.
  TRINE_DEVICE static void Shift(const Raw& raw, uint32_t* nibbles) {
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) nibbles[i] = raw.words[i] >> 16 | raw.words[i + 1] << 16;
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.words[0]);
    uint32_t nibbles[4];
    Shift(raw, nibbles);
    weights::SetNibbles(nibbles, block);
    weights::Subtract(8, block);
  }
};

template <>
struct WeightForm<quant::Type::kIQ4_NL, false> : WeightForm<quant::Type::kQ4_0, false> {
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.words[0]);
    uint32_t nibbles[4];
    Shift(raw, nibbles);
    weights::SetNibbles(nibbles, block);
    weights::LookUp<quant::NibbleTable::kIq4>(block);
  }
};

template <>
struct WeightForm<quant::Type::kQ4_1, false> : weights::FileBlock<Factors::kMinimum, 20> {
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.words[0]);
    block->dmin = weights::HighHalf(raw.words[0]);
    weights::SetNibbles(raw.words + 1, block);
  }
};

template <>
struct WeightForm<quant::Type::kQ5_0, false> : weights::FileBlock<Factors::kPlain, 22> {
  TRINE_DEVICE static void AddFifthBits(uint32_t bits, WeightBlock* block) {
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) block->q[i] |= quant::SpreadBits(bits >> (4 * i)) << 4;
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.words[0]);
    uint32_t words[5];
    TRINE_UNROLL
    for (int i = 0; i < 5; ++i) words[i] = raw.words[i] >> 16 | raw.words[i + 1] << 16;
    weights::SetNibbles(words + 1, block);
    AddFifthBits(words[0], block);
    weights::Subtract(16, block);
  }
};

template <>
struct WeightForm<quant::Type::kQ5_1, false> : weights::FileBlock<Factors::kMinimum, 24> {
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.words[0]);
    block->dmin = weights::HighHalf(raw.words[0]);
    weights::SetNibbles(raw.words + 2, block);
    WeightForm<quant::Type::kQ5_0, false>::AddFifthBits(raw.words[1], block);
  }
};

template <>
struct WeightForm<quant::Type::kQ8_0, false> : weights::FileBlock<Factors::kPlain, 34> {
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.words[0]);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) block->q[i] = raw.words[i] >> 16 | raw.words[i + 1] << 16;
  }
};

template <>
struct WeightForm<quant::Type::kMXFP4, false> : weights::FileBlock<Factors::kPlain, 17, 1> {
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = FromBits(quant::Mxfp4ScaleBits(raw.words[0] & 0xffu));
    uint32_t nibbles[4];
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) nibbles[i] = raw.words[i] >> 8 | raw.words[i + 1] << 24;
    weights::SetNibbles(nibbles, block);
    weights::LookUp<quant::NibbleTable::kMxfp4>(block);
  }
};

// ---- Blocks of 256 values, in a file ---------------------------------------------------------

template <>
struct WeightForm<quant::Type::kQ2_K, false> {
  static constexpr Factors kFactors = Factors::kScale16Minimum;
  struct Raw {
    uint32_t q[8];
    uint32_t d[1];
    uint32_t scales;
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 84);
    raw->part = weights::PartOf(block);
    LoadBytes<32, 2>(from + 16 + 32 * (raw->part / 4), raw->q);
    LoadBytes<4, 2>(from + 80, raw->d);
    raw->scales = LoadHalf(from + 2 * raw->part);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d[0]);
    block->dmin = weights::HighHalf(raw.d[0]);
    TRINE_UNROLL
    for (int h = 0; h < 2; ++h) {
      block->scale[h] = static_cast<int32_t>(raw.scales >> (8 * h) & 15u);
      block->min[h] = static_cast<int32_t>(raw.scales >> (8 * h + 4) & 15u);
    }
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) block->q[i] = raw.q[i] >> (2 * (raw.part % 4)) & 0x03030303u;
  }
};

template <>
struct WeightForm<quant::Type::kQ3_K, false> {
  static constexpr Factors kFactors = Factors::kScale16;
  struct Raw {
    uint32_t q[8], third[8], scales[3];
    uint32_t d;
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 110);
    raw->part = weights::PartOf(block);
    LoadBytes<32, 2>(from, raw->third);
    LoadBytes<32, 2>(from + 32 + 32 * (raw->part / 4), raw->q);
    LoadBytes<12, 2>(from + 96, raw->scales);
    raw->d = LoadHalf(from + 108);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d);
    TRINE_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int index = 2 * raw.part + h;
      const uint32_t low =
          ByteOf(raw.scales[0], raw.scales[1], index % 8) >> (index < 8 ? 0 : 4) & 15u;
      const uint32_t high = raw.scales[2] >> (8 * (index % 4) + 2 * (index / 4)) & 3u;
      block->scale[h] = static_cast<int32_t>(low | high << 4) - 32;
    }
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) {
      block->q[i] = (raw.q[i] >> (2 * (raw.part % 4)) & 0x03030303u) |
                    (raw.third[i] >> raw.part & 0x01010101u) << 2;
    }
    weights::Subtract(4, block);
  }
};

template <>
struct WeightForm<quant::Type::kQ4_K, false> {
  static constexpr Factors kFactors = Factors::kScale32Minimum;
  struct Raw {
    uint32_t q[8], header[4];
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 144);
    raw->part = weights::PartOf(block);
    LoadBytes<16, 2>(from, raw->header);
    LoadBytes<32, 2>(from + 16 + 32 * (raw->part / 2), raw->q);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    weights::SetHeaderK(raw.header, raw.part, block);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) block->q[i] = raw.q[i] >> (4 * (raw.part % 2)) & 0x0f0f0f0fu;
  }
};

template <>
struct WeightForm<quant::Type::kQ5_K, false> {
  static constexpr Factors kFactors = Factors::kScale32Minimum;
  struct Raw {
    uint32_t q[8], fifth[8], header[4];
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 176);
    raw->part = weights::PartOf(block);
    LoadBytes<16, 2>(from, raw->header);
    LoadBytes<32, 2>(from + 16, raw->fifth);
    LoadBytes<32, 2>(from + 48 + 32 * (raw->part / 2), raw->q);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    weights::SetHeaderK(raw.header, raw.part, block);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) {
      block->q[i] = (raw.q[i] >> (4 * (raw.part % 2)) & 0x0f0f0f0fu) |
                    (raw.fifth[i] >> raw.part & 0x01010101u) << 4;
    }
  }
};

template <>
struct WeightForm<quant::Type::kQ6_K, false> {
  static constexpr Factors kFactors = Factors::kScale16;
  struct Raw {
    uint32_t low[8], high[8];
    uint32_t scales, d;
    int part;
  };
  TRINE_DEVICE static void SetScales(uint32_t scales, WeightBlock* block) {
    block->scale[0] = static_cast<int8_t>(scales & 0xffu);
    block->scale[1] = static_cast<int8_t>(scales >> 8 & 0xffu);
  }
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 210);
    raw->part = weights::PartOf(block);
    LoadBytes<32, 2>(from + 64 * (raw->part / 4) + 32 * (raw->part % 2), raw->low);
    LoadBytes<32, 2>(from + 128 + 32 * (raw->part / 4), raw->high);
    raw->scales = LoadHalf(from + 192 + 2 * raw->part);
    raw->d = LoadHalf(from + 208);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d);
    SetScales(raw.scales, block);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) {
      block->q[i] = (raw.low[i] >> (4 * (raw.part % 4 / 2)) & 0x0f0f0f0fu) |
                    (raw.high[i] >> (2 * (raw.part % 4)) & 0x03030303u) << 4;
    }
    weights::Subtract(32, block);
  }
};

template <>
struct WeightForm<quant::Type::kIQ4_XS, false> {
  static constexpr Factors kFactors = Factors::kScale32;
  struct Raw {
    uint32_t nibbles[4], header[2];
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 136);
    raw->part = weights::PartOf(block);
    LoadBytes<8, 2>(from, raw->header);
    LoadBytes<16, 2>(from + 8 + 16 * raw->part, raw->nibbles);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.header[0]);
    const uint32_t low = raw.header[1] >> (4 * raw.part) & 15u;
    const uint32_t high = raw.header[0] >> (16 + 2 * raw.part) & 3u;
    block->scale[0] = static_cast<int32_t>(low | high << 4) - 32;
    weights::SetNibbles(raw.nibbles, block);
    weights::LookUp<quant::NibbleTable::kIq4>(block);
  }
};

template <>
struct WeightForm<quant::Type::kTQ1_0, false> {
  static constexpr Factors kFactors = Factors::kPlain;
  struct Raw {
    uint32_t words[8];  // bytes whose base-3 digits are the values
    uint32_t d;
    int part;
  };
  // Values 0-159 are five digits of 32 bytes, 160-239 five digits of 16, 240-255 four digits of 4.
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 54);
    raw->part = weights::PartOf(block);
    raw->d = LoadHalf(from + 52);
    if (raw->part < 5) return LoadBytes<32, 2>(from, raw->words);
    uint32_t sixteen[4], four[1];
    LoadBytes<16, 2>(from + 32, sixteen);
    LoadBytes<4, 2>(from + 48, four);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) raw->words[i] = raw->part == 7 && i >= 4 ? four[0] : sixteen[i % 4];
  }
  TRINE_DEVICE static uint32_t Power(int digit) {
    return digit == 0 ? 1u : digit == 1 ? 3u : digit == 2 ? 9u : digit == 3 ? 27u : 81u;
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int digit = raw.part < 5              ? raw.part
                        : raw.part == 7 && i >= 4 ? i - 4
                                                  : 2 * (raw.part - 5) + i / 4;
      block->q[i] = Less(quant::TernaryDigits(raw.words[i], Power(digit)), 1);
    }
  }
};

template <>
struct WeightForm<quant::Type::kTQ2_0, false> {
  static constexpr Factors kFactors = Factors::kPlain;
  struct Raw {
    uint32_t q[8];
    uint32_t d;
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int, int block, Raw* raw) {
    const std::byte* from = weights::Super(row, block, 66);
    raw->part = weights::PartOf(block);
    LoadBytes<32, 2>(from + 32 * (raw->part / 4), raw->q);
    raw->d = LoadHalf(from + 64);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) block->q[i] = raw.q[i] >> (2 * (raw.part % 4)) & 0x03030303u;
    weights::Subtract(1, block);
  }
};

// ---- Packed ----------------------------------------------------------------------------------

namespace weights {

TRINE_DEVICE const Word4* Words(const std::byte* p) { return reinterpret_cast<const Word4*>(p); }

TRINE_DEVICE void SetNibbles(const Word4& nibbles, WeightBlock* block) {
  const uint32_t words[4] = {nibbles.x, nibbles.y, nibbles.z, nibbles.w};
  SetNibbles(words, block);
}

TRINE_DEVICE void SetHeaderK(const Word4& header, int part, WeightBlock* block) {
  const uint32_t words[4] = {header.x, header.y, header.z, header.w};
  SetHeaderK(words, part, block);
}

}  // namespace weights

template <>
struct WeightForm<quant::Type::kQ8_0, true> {
  static constexpr Factors kFactors = Factors::kPlain;
  struct Raw {
    Word4 low, high;
    uint32_t d;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int blocks, int block, Raw* raw) {
    const int chunk = block & ~7, left = blocks - chunk, in_chunk = left < 8 ? left : 8;
    const Word4* from = weights::Words(row) + 2 * chunk + (block - chunk);
    raw->low = from[0];
    raw->high = from[in_chunk];
    raw->d = LoadHalf(row + 32 * static_cast<int64_t>(blocks) + 2 * block);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d);
    block->q[0] = raw.low.x, block->q[1] = raw.low.y;
    block->q[2] = raw.low.z, block->q[3] = raw.low.w;
    block->q[4] = raw.high.x, block->q[5] = raw.high.y;
    block->q[6] = raw.high.z, block->q[7] = raw.high.w;
  }
};

template <>
struct WeightForm<quant::Type::kQ4_0, true> {
  static constexpr Factors kFactors = Factors::kPlain;
  struct Raw {
    Word4 nibbles;
    uint32_t d;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int blocks, int block, Raw* raw) {
    raw->nibbles = weights::Words(row)[block];
    raw->d = LoadHalf(row + 16 * static_cast<int64_t>(blocks) + 2 * block);
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d);
    weights::SetNibbles(raw.nibbles, block);
    weights::Subtract(8, block);
  }
};

template <>
struct WeightForm<quant::Type::kQ4_K, true> {
  static constexpr Factors kFactors = Factors::kScale32Minimum;
  struct Raw {
    Word4 nibbles, header;
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int blocks, int block, Raw* raw) {
    raw->part = weights::PartOf(block);
    raw->nibbles = weights::Words(row)[block];
    raw->header = weights::Words(row)[blocks + block / 8];
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    weights::SetHeaderK(raw.header, raw.part, block);
    weights::SetNibbles(raw.nibbles, block);
  }
};

template <>
struct WeightForm<quant::Type::kQ5_K, true> {
  static constexpr Factors kFactors = Factors::kScale32Minimum;
  struct Raw {
    Word4 nibbles, header;
    uint32_t top;
    int part;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int blocks, int block, Raw* raw) {
    const std::byte* top = row + 16 * static_cast<int64_t>(blocks);
    raw->part = weights::PartOf(block);
    raw->nibbles = weights::Words(row)[block];
    raw->top = reinterpret_cast<const uint32_t*>(top)[block];
    raw->header = weights::Words(top + 4 * static_cast<int64_t>(blocks))[block / 8];
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    weights::SetHeaderK(raw.header, raw.part, block);
    weights::SetNibbles(raw.nibbles, block);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) block->q[i] |= (raw.top >> i & 0x01010101u) << 4;
  }
};

template <>
struct WeightForm<quant::Type::kQ6_K, true> {
  static constexpr Factors kFactors = Factors::kScale16;
  struct Raw {
    Word4 nibbles;
    Word2 top;
    uint32_t scales, d;
  };
  TRINE_DEVICE static void Fetch(const std::byte* row, int blocks, int block, Raw* raw) {
    const std::byte* top = row + 16 * static_cast<int64_t>(blocks);
    const std::byte* scales = top + 8 * static_cast<int64_t>(blocks);
    raw->nibbles = weights::Words(row)[block];
    raw->top = reinterpret_cast<const Word2*>(top)[block];
    raw->scales = LoadHalf(scales + 2 * static_cast<int64_t>(block));
    raw->d = LoadHalf(scales + 2 * static_cast<int64_t>(blocks) + 2 * (block / 8));
  }
  TRINE_DEVICE static void Decode(const Raw& raw, WeightBlock* block) {
    block->d = weights::LowHalf(raw.d);
    WeightForm<quant::Type::kQ6_K, false>::SetScales(raw.scales, block);
    weights::SetNibbles(raw.nibbles, block);
    TRINE_UNROLL
    for (int i = 0; i < 8; ++i) {
      block->q[i] |= ((i < 4 ? raw.top.x : raw.top.y) >> (2 * (i % 4)) & 0x03030303u) << 4;
    }
    weights::Subtract(32, block);
  }
};

}  // namespace trine::hip
