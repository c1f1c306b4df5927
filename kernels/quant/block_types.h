// The element types of tensors, and the block layouts of the quantised ones.
//
// The layouts are those of GGUF files, little-endian, without padding. A row starts at a multiple
// of its block's alignment (at most 4 bytes), which GGUF guarantees. Plugins and stored KV blocks
// use the numbers of `Type` too: they never change.
#pragma once

#include <cstdint>

namespace trine::quant {

enum class Type : uint32_t {
  kF32 = 1,
  kF16 = 2,
  kBF16 = 3,
  kI32 = 4,
  kQ4_0 = 16,
  kQ4_1 = 17,
  kQ5_0 = 18,
  kQ5_1 = 19,
  kQ8_0 = 20,
  kQ8_KV = 21,
  kQ2_K = 24,
  kQ3_K = 25,
  kQ4_K = 26,
  kQ5_K = 27,
  kQ6_K = 28,
  kIQ4_NL = 32,
  kIQ4_XS = 33,
  kTQ1_0 = 40,
  kTQ2_0 = 41,
  kMXFP4 = 48,
};

// Every type, in the order of their numbers.
inline constexpr Type kAllTypes[] = {
    Type::kF32,    Type::kF16,    Type::kBF16,  Type::kI32,   Type::kQ4_0,
    Type::kQ4_1,   Type::kQ5_0,   Type::kQ5_1,  Type::kQ8_0,  Type::kQ8_KV,
    Type::kQ2_K,   Type::kQ3_K,   Type::kQ4_K,  Type::kQ5_K,  Type::kQ6_K,
    Type::kIQ4_NL, Type::kIQ4_XS, Type::kTQ1_0, Type::kTQ2_0, Type::kMXFP4,
};

// The name and the sizes of a type.
struct TypeTraits {
  const char* name;      // "q4_0"
  int32_t block_values;  // 1, 32 or 256
  int32_t block_bytes;   // 0 for a number that stands for no type
};

TypeTraits Traits(Type type);

// Returns whether the type has an integer dot product: true for all but f32, f16, bf16 and i32.
bool IsQuantized(Type type);

// Computes the size of a row. Returns false if it is no whole number of blocks, or does not fit.
bool RowBytes(Type type, int64_t values, uint64_t* bytes);

// The number of values that share one quantised activation block, whatever the weight's block size.
inline constexpr int kGroupValues = 32;
// The number of values in a block of the K types, IQ4_XS, TQ1_0 and TQ2_0.
inline constexpr int kSuperValues = 256;
inline constexpr int kSuperGroups = kSuperValues / kGroupValues;

// In the structs below a uint16_t named d, m or dmin holds the bits of an f16; a nibble array holds
// value i in the low half of byte i and value i + 16 in the high half.

struct BlockQ4_0 {  // d * (q - 8)
  uint16_t d;
  uint8_t nibbles[16];
};
struct BlockQ4_1 {  // d * q + m
  uint16_t d, m;
  uint8_t nibbles[16];
};
struct BlockQ5_0 {  // d * (q - 16)
  uint16_t d;
  uint8_t fifth_bits[4];  // bit i belongs to value i
  uint8_t nibbles[16];
};
struct BlockQ5_1 {  // d * q + m
  uint16_t d, m;
  uint8_t fifth_bits[4];
  uint8_t nibbles[16];
};
struct BlockQ8_0 {  // d * q
  uint16_t d;
  int8_t q[32];
};
// A block of the KV cache, quantised like an activation. Not a file format.
struct BlockQ8_KV {  // d * q
  float d;
  int8_t q[32];
};
struct BlockIQ4_NL {  // d * kIq4Values[q]
  uint16_t d;
  uint8_t nibbles[16];
};
struct BlockMXFP4 {  // 2^(e - 128) * kMxfp4Values[q]
  uint8_t e;
  uint8_t nibbles[16];
};

struct BlockQ2_K {     // d * scale * q - dmin * min, scale and min per 16 values
  uint8_t scales[16];  // low half scale, high half min
  uint8_t q[64];
  uint16_t d, dmin;
};
struct BlockQ3_K {  // d * (scale - 32) * (q - 4), scale per 16 values
  uint8_t third_bits[32];
  uint8_t q[64];
  uint8_t scales[12];  // 16 scales of 6 bits
  uint16_t d;
};
struct BlockQ4_K {  // d * scale * q - dmin * min, scale and min per 32 values
  uint16_t d, dmin;
  uint8_t scales[12];  // 8 scales and 8 mins of 6 bits
  uint8_t q[128];
};
struct BlockQ5_K {  // like Q4_K, with a fifth bit
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t fifth_bits[32];
  uint8_t q[128];
};
struct BlockQ6_K {  // d * scale * (q - 32), scale per 16 values
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t d;
};
struct BlockIQ4_XS {  // d * (scale - 32) * kIq4Values[q], scale per 32 values
  uint16_t d;
  uint16_t scales_high;
  uint8_t scales_low[4];
  uint8_t q[128];
};
struct BlockTQ1_0 {  // d * (digit - 1), base-3 digits
  uint8_t five[48];  // five digits to a byte
  uint8_t four[4];   // four digits to a byte
  uint16_t d;
};
struct BlockTQ2_0 {  // d * (q - 1)
  uint8_t q[64];
  uint16_t d;
};

static_assert(sizeof(BlockQ4_0) == 18);
static_assert(sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ8_KV) == 36);
static_assert(sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockMXFP4) == 17);
static_assert(sizeof(BlockQ2_K) == 84);
static_assert(sizeof(BlockQ3_K) == 110);
static_assert(sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210);
static_assert(sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockTQ1_0) == 54);
static_assert(sizeof(BlockTQ2_0) == 66);

// The values that a nibble stands for.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,  // E2M1, doubled
                                            0, -1, -2, -3, -4, -6, -8, -12};

// MXFP4 stores scales of 2^-128 to 2^127. They are clamped to these exponents. Then a scale times
// the least activation scale (2^-57, 24 bits) has no bit below 2^-126, so no partial sum can be
// denormal, and no sum can overflow. No model has weights so small or so large.
inline constexpr int kMxfp4MinExponent = -46;
inline constexpr int kMxfp4MaxExponent = 50;

// A quantised type and its block.
template <Type kTypeOf, class BlockOf>
struct Blocks {
  static constexpr Type kType = kTypeOf;
  using Block = BlockOf;
};

// A list of types that a template is instantiated for.
template <Type kType, Type... kOthers>
struct TypeList {
  static constexpr bool Has(Type type) { return type == kType || ((type == kOthers) || ...); }

  // Returns function.operator()<type>(), or an empty result if the type is not in the list.
  template <class Function>
  [[gnu::always_inline]] static auto Call(Type type, const Function& function) {
    if (type == kType) return function.template operator()<kType>();
    if constexpr (sizeof...(kOthers) != 0) {
      return TypeList<kOthers...>::Call(type, function);
    } else {
      return decltype(function.template operator()<kType>())();
    }
  }
};
// The types of weights with blocks of 32 values, and those with blocks of 256 values.
using SmallBlockTypes = TypeList<Type::kQ4_0, Type::kQ4_1, Type::kQ5_0, Type::kQ5_1, Type::kQ8_0,
                                 Type::kIQ4_NL, Type::kMXFP4>;
using SuperBlockTypes = TypeList<Type::kQ2_K, Type::kQ3_K, Type::kQ4_K, Type::kQ5_K, Type::kQ6_K,
                                 Type::kIQ4_XS, Type::kTQ1_0, Type::kTQ2_0>;

// Does what TypeList::Call does, for any type of quantised weights.
template <class Function>
[[gnu::always_inline]] static inline auto CallForWeights(Type type, const Function& function) {
  return SmallBlockTypes::Has(type) ? SmallBlockTypes::Call(type, function)
                                    : SuperBlockTypes::Call(type, function);
}

// Calls call(Blocks<...>()) for a quantised type. Returns false for other types.
template <class Call>
static bool WithBlocks(Type type, Call call) {
  switch (type) {
    case Type::kQ4_0:
      return call(Blocks<Type::kQ4_0, BlockQ4_0>()), true;
    case Type::kQ4_1:
      return call(Blocks<Type::kQ4_1, BlockQ4_1>()), true;
    case Type::kQ5_0:
      return call(Blocks<Type::kQ5_0, BlockQ5_0>()), true;
    case Type::kQ5_1:
      return call(Blocks<Type::kQ5_1, BlockQ5_1>()), true;
    case Type::kQ8_0:
      return call(Blocks<Type::kQ8_0, BlockQ8_0>()), true;
    case Type::kQ8_KV:
      return call(Blocks<Type::kQ8_KV, BlockQ8_KV>()), true;
    case Type::kQ2_K:
      return call(Blocks<Type::kQ2_K, BlockQ2_K>()), true;
    case Type::kQ3_K:
      return call(Blocks<Type::kQ3_K, BlockQ3_K>()), true;
    case Type::kQ4_K:
      return call(Blocks<Type::kQ4_K, BlockQ4_K>()), true;
    case Type::kQ5_K:
      return call(Blocks<Type::kQ5_K, BlockQ5_K>()), true;
    case Type::kQ6_K:
      return call(Blocks<Type::kQ6_K, BlockQ6_K>()), true;
    case Type::kIQ4_NL:
      return call(Blocks<Type::kIQ4_NL, BlockIQ4_NL>()), true;
    case Type::kIQ4_XS:
      return call(Blocks<Type::kIQ4_XS, BlockIQ4_XS>()), true;
    case Type::kTQ1_0:
      return call(Blocks<Type::kTQ1_0, BlockTQ1_0>()), true;
    case Type::kTQ2_0:
      return call(Blocks<Type::kTQ2_0, BlockTQ2_0>()), true;
    case Type::kMXFP4:
      return call(Blocks<Type::kMXFP4, BlockMXFP4>()), true;
    default:
      return false;
  }
}

}  // namespace trine::quant
