// Describes how each type lies in a packed group (packed.h) at this level, and reads its parts.
#pragma once

#include <cstdint>

#include "kernels/cpu/product/unpack.h"
#include "kernels/cpu/simd/half.h"
#include "kernels/cpu/simd/int8_dot.h"
#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr int kVectorBytes = 4 * kTileRows;  // four values of every row of a group
// The offset of values in triples: a single bit, so that flipping it subtracts the offset.
constexpr int kTripleOffset = 32;

// The floats before the blocks of a chunk, in addition to the integer scales of its traits.
enum class Floats {
  kBlockF16,       // d of every block
  kBlockF16Pair,   // d and m of every block
  kBlockExponent,  // MXFP4's exponent of every block, clamped as for its d
  kChunkF16,       // one d
  kChunkF16Pair,   // one d, one dmin
};

struct PackedTraits {
  int low_bits = 4;   // 4: two values to a byte, one of each half of the block; or 8
  int high_bits = 0;  // the bits above the low four: 0, 1 or 2
  Floats floats = Floats::kBlockF16;
  const uint8_t* table = nullptr;  // values are indices into it; null: none
};

constexpr PackedTraits PackedTraitsOf(Type type) {
  switch (type) {
    case Type::kQ4_0:
      return {};
    case Type::kQ4_1:
      return {.floats = Floats::kBlockF16Pair};
    case Type::kQ5_0:
      return {.high_bits = 1};
    case Type::kQ5_1:
      return {.high_bits = 1, .floats = Floats::kBlockF16Pair};
    case Type::kQ8_0:
      return {.low_bits = 8};
    case Type::kIQ4_NL:
      return {.table = kIq4Bytes};
    case Type::kMXFP4:
      return {.floats = Floats::kBlockExponent, .table = kMxfp4Bytes};
    case Type::kQ4_K:
      return {.floats = Floats::kChunkF16Pair};
    case Type::kQ5_K:
      return {.high_bits = 1, .floats = Floats::kChunkF16Pair};
    case Type::kQ6_K:
      return {.high_bits = 2, .floats = Floats::kChunkF16};
    case Type::kIQ4_XS:
      return {.floats = Floats::kChunkF16, .table = kIq4Bytes};
    default:
      return {.low_bits = 0};
  }
}

// The offsets of a chunk's parts. A chunk of fewer than eight blocks, which only types of 32-value
// blocks have, is shorter by the missing blocks.
template <Type kType>
struct Packed {
  static constexpr PackedTraits kPlanes = PackedTraitsOf(kType);
  static constexpr FormatTraits kTraits = Format<kType>::kTraits;
  static constexpr int kScales = IntegerScales(kTraits);
  static constexpr bool kHasMins = kTraits.minimums == Minimums::kBlock;
  static_assert(kTraits.minimums != Minimums::kHalf);
  // true: bytes are multiplied where they lie, so they lie in the order for many columns. Other
  // values are put in that order when they are unpacked for many columns; without it few columns
  // are faster.
  static constexpr bool kInPlace = kPlanes.low_bits == 8;
  static constexpr bool kInPairs = kPairs && kInPlace;
  // true: values of six bits, minus 32, lie in triples: three vectors have three values in their
  // low bits, and a fourth value in their upper two bits. They are multiplied as signed values,
  // four times as large, which is faster for one column.
  static constexpr bool kInTriples = kPairs && kPlanes.high_bits == 2;
  static_assert(!kInTriples || (kPlanes.low_bits == 4 && kTraits.offset == kTripleOffset));

  // Returns the bytes of d (or e) and m (or dmin). After them come the scales, by block and half,
  // then the minimums.
  static constexpr int64_t FloatBytes(int blocks) {
    switch (kPlanes.floats) {
      case Floats::kBlockF16:
        return 2 * kTileRows * blocks;
      case Floats::kBlockF16Pair:
        return 4 * kTileRows * blocks;
      case Floats::kBlockExponent:
        return kTileRows * blocks;
      case Floats::kChunkF16:
        return 2 * kTileRows;
      default:
        return 4 * kTileRows;
    }
  }
  static constexpr int64_t HeaderBytes(int blocks) {
    const int64_t bytes = FloatBytes(blocks) + (kScales + kHasMins) * kTileRows * blocks;
    return (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }
  static constexpr int kLowVectors = kPlanes.low_bits;
  static constexpr int kBlockBytes = (kLowVectors + kPlanes.high_bits) * kVectorBytes;
  static constexpr int64_t ChunkBytes(int blocks) {
    return HeaderBytes(blocks) + blocks * kBlockBytes;
  }
  static constexpr int64_t GroupBytes(int64_t k) {
    const int64_t blocks = k / quant::kGroupValues, rest = blocks % quant::kSuperGroups;
    return blocks / quant::kSuperGroups * ChunkBytes(quant::kSuperGroups) +
           (rest == 0 ? 0 : ChunkBytes(static_cast<int>(rest)));
  }
};

// --- Bytes

TRINE_INLINE SliceBytes LoadVector(const uint8_t* from) { return Load<4 * kSliceRows>(from); }
TRINE_INLINE SliceBytes SplatVector(int x) {
  return Splat<4 * kSliceRows>(static_cast<uint8_t>(x));
}

// Returns the bits of `from` where the mask is set, and those of `into` elsewhere.
template <int N>
TRINE_INLINE Vec<uint8_t, N> Insert(Vec<uint8_t, N> mask, Vec<uint8_t, N> from,
                                    Vec<uint8_t, N> into) {
#if defined(__aarch64__)
  if constexpr (N == 16) {
    return {(typename Vec<uint8_t, N>::Raw)vbslq_u8((uint8x16_t)mask.v, (uint8x16_t)from.v,
                                                    (uint8x16_t)into.v)};
  } else {
    return {Insert(mask.lo, from.lo, into.lo), Insert(mask.hi, from.hi, into.hi)};
  }
#else
  return (mask & from) | into;  // into's bits under the mask are 0 in all uses
#endif
}

template <int kShift, int N>
TRINE_INLINE Vec<uint8_t, N> ShiftedLeft(Vec<uint8_t, N> x) {
  if constexpr (kShift > 0) {
    return x << kShift;
  } else if constexpr (kShift < 0) {
    return x >> -kShift;
  } else {
    return x;
  }
}

#if defined(__AVX512F__)
TRINE_INLINE SliceBytes LookupVector(const uint8_t* table, SliceBytes nibbles) {
  const __m512i entries = _mm512_maskz_broadcast_i32x4(
      0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {(SliceBytes::Raw)_mm512_maskz_shuffle_epi8(~__mmask64{0}, entries, (__m512i)nibbles.v)};
}
#elif defined(__AVX2__)
TRINE_INLINE SliceBytes LookupVector(const uint8_t* table, SliceBytes nibbles) {
  return Lookup(*reinterpret_cast<const uint8_t(*)[16]>(table), nibbles);
}
#else
TRINE_INLINE SliceBytes LookupVector(const uint8_t* table, SliceBytes nibbles) {
  return Lookup16(table, nibbles);
}
#endif

template <Type kType>
TRINE_INLINE SliceBytes Values(SliceBytes indices) {
  constexpr const uint8_t* kTable = Packed<kType>::kPlanes.table;
  if constexpr (kTable == nullptr) {
    return indices;
  } else if constexpr (Packed<kType>::kTraits.is_signed && kSignedOffset != 0) {
    return LookupVector(kTable, indices) ^ SplatVector(kSignedOffset);
  } else {
    return LookupVector(kTable, indices);
  }
}

// Returns quad kQuad % 4 of half kQuad / 4 of a block: four values of every row of the slice whose
// bytes begin at `block`. The bytes are those that Format::Unpack makes.
template <Type kType, int kQuad>
TRINE_INLINE SliceBytes Quad(const uint8_t* block) {
  constexpr PackedTraits kPlanes = Packed<kType>::kPlanes;
  if constexpr (Packed<kType>::kInPlace) {
    return LoadVector(block + kQuad * kVectorBytes);
  } else if constexpr (Packed<kType>::kInTriples) {
    const auto triple = [&](int i) {
      return LoadVector(block + (kQuad / 4 * 3 + i) * kVectorBytes);
    };
    if constexpr (kQuad % 4 < 3) {
      return (triple(kQuad % 4) & SplatVector(63)) ^ SplatVector(kTripleOffset);
    } else {
      const SliceBytes upper = ((triple(0) >> 6) << 4) | ((triple(1) >> 6) << 2);
      return (upper | (triple(2) >> 6)) ^ SplatVector(kTripleOffset);
    }
  } else {
    const SliceBytes both = LoadVector(block + kQuad % 4 * kVectorBytes);
    const SliceBytes low = kQuad < 4 ? both & SplatVector(15) : both >> 4;
    const uint8_t* high = block + 4 * kVectorBytes;
    if constexpr (kPlanes.high_bits == 1) {
      return Insert(SplatVector(16), ShiftedLeft<4 - kQuad>(LoadVector(high)), low);
    } else if constexpr (kPlanes.high_bits == 2) {
      const SliceBytes bits = LoadVector(high + kQuad / 4 * kVectorBytes);
      return Insert(SplatVector(48), ShiftedLeft<4 - 2 * (kQuad % 4)>(bits), low);
    } else {
      return Values<kType>(low);
    }
  }
}

template <Type kType, int kHalf>
TRINE_INLINE void LoadHalf(const uint8_t* block, SliceBytes (&w)[4]) {
  w[0] = Quad<kType, 4 * kHalf>(block);
  w[1] = Quad<kType, 4 * kHalf + 1>(block);
  w[2] = Quad<kType, 4 * kHalf + 2>(block);
  w[3] = Quad<kType, 4 * kHalf + 3>(block);
}

// --- Scales, as floats. Products of an integer scale and a sum of products are below 2^24, so that
// multiplying them as floats is exact.

// The scales of a slice's rows in one block.
struct BlockScales {
  SliceFloats d, dmin;
  SliceFloats scale[2];
  SliceInts integer_scale[2];  // the same, where kScaleHalvesAsIntegers
  SliceFloats min;
};

// Returns d of MXFP4, 2^e.
TRINE_INLINE SliceFloats PowersOfTwo(const uint8_t* e) {
  const SliceInts exponents = LoadI8AsInts<kSliceRows>(reinterpret_cast<const int8_t*>(e));
  return BitCast<float>((exponents + Splat<kSliceRows>(127)) << 23);
}

// Loads the scales of block j of a chunk of `blocks`, for the slice whose first row is `row`.
template <Type kType>
TRINE_INLINE BlockScales LoadScales(const uint8_t* chunk, int blocks, int j, int row) {
  using P = Packed<kType>;
  constexpr Floats kFloats = P::kPlanes.floats;
  const auto* halves = reinterpret_cast<const uint16_t*>(chunk) + row;
  BlockScales s;
  if constexpr (kFloats == Floats::kBlockExponent) {
    s.d = PowersOfTwo(chunk + j * kTileRows + row);
  } else if constexpr (kFloats == Floats::kBlockF16 || kFloats == Floats::kBlockF16Pair) {
    s.d = LoadF16<kSliceRows>(halves + j * kTileRows);
    if constexpr (kFloats == Floats::kBlockF16Pair) {
      s.dmin = LoadF16<kSliceRows>(halves + (blocks + j) * kTileRows);
    }
  } else {
    s.d = LoadF16<kSliceRows>(halves);
    if constexpr (kFloats == Floats::kChunkF16Pair) {
      s.dmin = LoadF16<kSliceRows>(halves + kTileRows);
    }
  }
  const auto* bytes = reinterpret_cast<const int8_t*>(chunk) + P::FloatBytes(blocks) + row;
  for (int h = 0; h < P::kScales; ++h) {
    const int8_t* scales = bytes + (P::kScales * j + h) * kTileRows;
    s.scale[h] = LoadI8<kSliceRows>(scales);
    if constexpr (kScaleHalvesAsIntegers) s.integer_scale[h] = LoadI8AsInts<kSliceRows>(scales);
  }
  if constexpr (P::kHasMins) {
    s.min = LoadI8<kSliceRows>(bytes + (P::kScales * blocks + j) * kTileRows);
  }
  return s;
}

// The types that are packed.
using PackedTypes =
    quant::TypeList<Type::kQ4_0, Type::kQ4_1, Type::kQ5_0, Type::kQ5_1, Type::kQ8_0, Type::kIQ4_NL,
                    Type::kMXFP4, Type::kQ4_K, Type::kQ5_K, Type::kQ6_K, Type::kIQ4_XS>;

}  // namespace

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
