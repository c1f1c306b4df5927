// The element types of tensors, and the block layouts of the quantised ones.
//
// The layouts are those of GGUF files, little-endian, without padding. A row starts at a multiple
// of its block's alignment (at most 4 bytes), which GGUF guarantees. The numbers of `Type` are
// shared with plugins and stored KV blocks: they never change.

#ifndef TRINE_KERNELS_QUANT_BLOCK_TYPES_H_
#define TRINE_KERNELS_QUANT_BLOCK_TYPES_H_

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

struct TypeTraits {
  const char* name;      // "q4_0"
  int32_t block_values;  // 1, 32 or 256
  int32_t block_bytes;   // 0 for a number that is no type
};

TypeTraits Traits(Type type);

// True for the types whose dot product is integer work: all but f32, f16, bf16 and i32.
bool IsQuantized(Type type);

// The size of a row. False when the row is no whole number of blocks or its size does not fit.
bool RowBytes(Type type, int64_t values, uint64_t* bytes);

// Values that share one quantised activation block, whatever the weight's own block size.
inline constexpr int kGroupValues = 32;
// Values in a block of the K types, IQ4_XS, TQ1_0 and TQ2_0.
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
// Not a file format: a block of the KV cache, quantised as an activation is.
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
struct BlockQ5_K {  // as Q4_K with a fifth bit
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

// The values a nibble stands for.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,  // E2M1, doubled
                                            0, -1, -2, -3, -4, -6, -8, -12};

// MXFP4 stores scales of 2^-128 to 2^127. Clamped to these exponents, a scale times the least
// activation scale (2^-57, 24 bits) has no bit below 2^-126, so no partial sum can be denormal, and
// no sum can overflow. Weights that small or large occur in no model.
inline constexpr int kMxfp4MinExponent = -46;
inline constexpr int kMxfp4MaxExponent = 50;

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_BLOCK_TYPES_H_
