// Reads quantised weights, 32 at a time, in the file's layout or packed
// (kernels/quant/packed_rows.h). Packed weights are loaded and decoded in two steps, so that a
// kernel can load ahead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/words.h"
#include "kernels/quant/group_words.h"

namespace trine::hip {

using quant::GroupForm;
using quant::GroupWords;
using quant::Type;

enum class Layout {
  kFile,       // blocks begin at multiples of their alignment
  kFileWords,  // blocks and rows begin at multiples of four bytes
  kPacked,
};

// Returns whether the type's blocks are whole words.
inline constexpr bool HasWordBlocks(Type type) {
  return type == Type::kQ4_1 || type == Type::kQ5_1 || type == Type::kQ2_K || type == Type::kQ4_K ||
         type == Type::kQ5_K || type == Type::kIQ4_XS;
}

// 32 weights, with their scales as floats, and with bytes that were looked up in the type's table.
template <Type kType>
struct Group {
  static constexpr GroupForm kForm = quant::FormOf(kType);
  GroupWords words;
  float d, dmin;
};

template <Type kType>
TRINE_DEVICE Group<kType> Finished(const GroupWords& words) {
  constexpr GroupForm kForm = quant::FormOf(kType);
  Group<kType> g;
  g.words = words;
  if constexpr (kType == Type::kMXFP4) {
    g.d = FromBits(quant::Mxfp4ScaleBits(words.d));
  } else {
    g.d = HalfToFloat(words.d);
  }
  g.dmin = kForm.minimum ? HalfToFloat(words.dmin) : 0.0f;
  if constexpr (kForm.table != quant::NibbleTable::kNone) {
    for (int i = 0; i < 8; ++i) g.words.q[i] = Pick16<kForm.table>(words.q[i]);
  }
  return g;
}

// Rows in the file's layout, which are decoded as they are loaded.
template <Type kType, Layout kLayout>
struct Weights {
  static constexpr Type kWeightType = kType;
  static constexpr bool kAhead = false;
  using Raw = GroupWords;

  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t /*blocks*/, uint32_t block) {
    if constexpr (kType == Type::kMXFP4) {
      return quant::TakeGroup<kType>(quant::ByteSource{reinterpret_cast<const uint8_t*>(row)},
                                     block);
    } else if constexpr (kLayout == Layout::kFileWords) {
      return quant::TakeGroup<kType>(quant::WordSource{reinterpret_cast<const uint32_t*>(row)},
                                     block);
    } else {
      return quant::TakeGroup<kType>(quant::HalfSource{reinterpret_cast<const uint16_t*>(row)},
                                     block);
    }
  }
  TRINE_DEVICE static Group<kType> Decode(const Raw& raw, uint32_t /*block*/) {
    return Finished<kType>(raw);
  }
};

TRINE_DEVICE Word4 PackedWords(const std::byte* at, uint32_t index) {
  return LoadOnce(reinterpret_cast<const Word4*>(at) + index);
}
TRINE_DEVICE uint16_t PackedHalf(const std::byte* at, uint32_t index) {
  return LoadOnce(reinterpret_cast<const uint16_t*>(at) + index);
}
TRINE_DEVICE void SetPackedNibbles(const Word4& w, GroupWords* g) {
  quant::SetNibbles(w.x, 0, g);
  quant::SetNibbles(w.y, 1, g);
  quant::SetNibbles(w.z, 2, g);
  quant::SetNibbles(w.w, 3, g);
}

template <>
struct Weights<Type::kQ8_0, Layout::kPacked> {
  static constexpr Type kWeightType = Type::kQ8_0;
  static constexpr bool kAhead = true;
  struct Raw {
    Word4 low, high;
    uint16_t d;
  };
  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t blocks, uint32_t block) {
    // A chunk of eight blocks has the first halves of all, then the second halves.
    const uint32_t chunk = block & ~7u, rest = blocks - chunk;
    const uint32_t at = block + chunk;
    return {PackedWords(row, at), PackedWords(row, at + (rest < 8 ? rest : 8)),
            PackedHalf(row + uint64_t{32} * blocks, block)};
  }
  TRINE_DEVICE static Group<kWeightType> Decode(const Raw& raw, uint32_t /*block*/) {
    GroupWords g;
    g.d = raw.d;
    g.q[0] = raw.low.x, g.q[1] = raw.low.y, g.q[2] = raw.low.z, g.q[3] = raw.low.w;
    g.q[4] = raw.high.x, g.q[5] = raw.high.y, g.q[6] = raw.high.z, g.q[7] = raw.high.w;
    return Finished<kWeightType>(g);
  }
};

template <>
struct Weights<Type::kQ4_0, Layout::kPacked> {
  static constexpr Type kWeightType = Type::kQ4_0;
  static constexpr bool kAhead = true;
  struct Raw {
    Word4 nibbles;
    uint16_t d;
  };
  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t blocks, uint32_t block) {
    return {PackedWords(row, block), PackedHalf(row + uint64_t{16} * blocks, block)};
  }
  TRINE_DEVICE static Group<kWeightType> Decode(const Raw& raw, uint32_t /*block*/) {
    GroupWords g;
    g.d = raw.d;
    SetPackedNibbles(raw.nibbles, &g);
    return Finished<kWeightType>(g);
  }
};

// Q4_K, and Q5_K, whose fifth bits lie between the nibbles and the headers.
template <Type kType>
struct PackedK {
  static constexpr Type kWeightType = kType;
  static constexpr bool kAhead = true;
  static constexpr bool kFive = kType == Type::kQ5_K;
  struct Raw {
    Word4 nibbles, header;
    uint32_t top;
  };
  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t blocks, uint32_t block) {
    const std::byte* top = row + uint64_t{16} * blocks;
    const std::byte* headers = top + (kFive ? uint64_t{4} * blocks : 0);
    return {PackedWords(row, block), PackedWords(headers, block / 8),
            kFive ? LoadOnce(reinterpret_cast<const uint32_t*>(top) + block) : 0};
  }
  TRINE_DEVICE static Group<kType> Decode(const Raw& raw, uint32_t block) {
    GroupWords g;
    SetPackedNibbles(raw.nibbles, &g);
    if constexpr (kFive) {
      for (int i = 0; i < 8; ++i) g.q[i] |= ((raw.top >> i) & 0x01010101u) << 4;
    }
    g.d = static_cast<uint16_t>(raw.header.x & 0xffffu);
    g.dmin = static_cast<uint16_t>(raw.header.x >> 16);
    quant::SetScaleAndMin(raw.header.y, raw.header.z, raw.header.w, block & 7u, &g);
    return Finished<kType>(g);
  }
};
template <>
struct Weights<Type::kQ4_K, Layout::kPacked> : PackedK<Type::kQ4_K> {};
template <>
struct Weights<Type::kQ5_K, Layout::kPacked> : PackedK<Type::kQ5_K> {};

template <>
struct Weights<Type::kQ6_K, Layout::kPacked> {
  static constexpr Type kWeightType = Type::kQ6_K;
  static constexpr bool kAhead = true;
  struct Raw {
    Word4 nibbles;
    Word2 top;
    uint16_t scales, d;
  };
  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t blocks, uint32_t block) {
    const std::byte* top = row + uint64_t{16} * blocks;
    const std::byte* scales = top + uint64_t{8} * blocks;
    return {PackedWords(row, block), LoadOnce(reinterpret_cast<const Word2*>(top) + block),
            PackedHalf(scales, block), PackedHalf(scales + uint64_t{2} * blocks, block / 8)};
  }
  TRINE_DEVICE static Group<kWeightType> Decode(const Raw& raw, uint32_t /*block*/) {
    GroupWords g;
    SetPackedNibbles(raw.nibbles, &g);
    for (int i = 0; i < 4; ++i) {
      g.q[i] |= ((raw.top.x >> (2 * i)) & 0x03030303u) << 4;
      g.q[i + 4] |= ((raw.top.y >> (2 * i)) & 0x03030303u) << 4;
    }
    g.scale[0] = quant::SignedByte(raw.scales, 0);
    g.scale[1] = quant::SignedByte(raw.scales, 1);
    g.d = raw.d;
    return Finished<kWeightType>(g);
  }
};

}  // namespace trine::hip
