#include "kernels/quant/packed_rows.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/test_util.h"

namespace trine::quant {
namespace {

constexpr Type kPackedTypes[] = {Type::kF16,  Type::kQ4_0, Type::kQ8_0,
                                 Type::kQ4_K, Type::kQ5_K, Type::kQ6_K};

std::vector<std::byte> Pack(Type type, int64_t k, const std::vector<std::byte>& plain) {
  uint64_t bytes = 0;
  EXPECT_TRUE(PackedRowBytes(type, k, &bytes));
  std::vector<std::byte> packed(bytes, std::byte{0xee});
  PackRow(type, k, plain.data(), packed.data());
  return packed;
}

TEST(PackedLayoutTest, ComesBackAsItWas) {
  for (const Type type : kPackedTypes) {
    const int64_t block = Traits(type).block_values;
    for (const int64_t blocks : {1, 2, 7, 8, 9, 28, 301}) {
      const int64_t k = block * blocks;
      Random random(static_cast<uint64_t>(k));
      const std::vector<std::byte> plain = RandomWeights(type, k, true, &random);
      const std::vector<std::byte> packed = Pack(type, k, plain);
      EXPECT_EQ(packed.size() % kPackedAlignment, 0u);
      EXPECT_LT(packed.size(), plain.size() + 128);
      std::vector<std::byte> back(plain.size(), std::byte{0xee});
      UnpackRow(type, k, packed.data(), back.data());
      EXPECT_EQ(back, plain) << Traits(type).name << " of " << k;
    }
  }
}

// Reads a packed row as the shaders do, by the header's description.
class Reader {
 public:
  Reader(Type type, int64_t blocks, const std::vector<std::byte>& packed)
      : type_(type), blocks_(blocks), packed_(packed) {}

  int Value(int64_t b, int i) const {
    if (type_ == Type::kQ8_0) {
      const int64_t chunk = b / 8 * 8, in_chunk = std::min<int64_t>(8, blocks_ - chunk);
      return static_cast<int8_t>(Byte(32 * chunk + 16 * (b % 8 + i / 16 * in_chunk) + i % 16));
    }
    const int nibble = (Byte(16 * b + i % 16) >> (4 * (i / 16))) & 15;
    if (type_ == Type::kQ4_0) return nibble - 8;
    if (type_ == Type::kQ4_K) return nibble;
    if (type_ == Type::kQ5_K) {
      return nibble | ((Word(16 * blocks_ + 4 * b) >> (8 * (i % 4) + i / 4)) & 1) << 4;
    }
    const uint32_t top = Word(16 * blocks_ + 8 * b + 4 * (i / 16));
    return static_cast<int>(nibble | ((top >> (8 * (i % 4) + 2 * (i % 16 / 4))) & 3) << 4) - 32;
  }

  uint16_t D(int64_t b) const {
    switch (type_) {
      case Type::kQ8_0:
        return Half(32 * blocks_ + 2 * b);
      case Type::kQ4_0:
        return Half(16 * blocks_ + 2 * b);
      case Type::kQ4_K:
        return Half(16 * blocks_ + 16 * (b / 8));
      case Type::kQ5_K:
        return Half(20 * blocks_ + 16 * (b / 8));
      default:
        return Half(26 * blocks_ + 2 * (b / 8));
    }
  }

 private:
  int Byte(int64_t at) const { return std::to_integer<int>(packed_.at(static_cast<size_t>(at))); }
  uint16_t Half(int64_t at) const { return static_cast<uint16_t>(Byte(at) | Byte(at + 1) << 8); }
  uint32_t Word(int64_t at) const {
    return static_cast<uint32_t>(Half(at)) | static_cast<uint32_t>(Half(at + 2)) << 16;
  }

  Type type_;
  int64_t blocks_;
  const std::vector<std::byte>& packed_;
};

TEST(PackedLayoutTest, HoldsTheNumbersWhereItSays) {
  for (const Type type : kPackedTypes) {
    if (type == Type::kF16) continue;
    const int64_t k = Traits(type).block_values == 32 ? 32 * 21 : 256 * 3;
    Random random(7);
    const std::vector<std::byte> plain = RandomWeights(type, k, true, &random);
    const std::vector<std::byte> packed = Pack(type, k, plain);
    const Reader reader(type, k / 32, packed);
    for (int64_t b = 0; b < k / 32; ++b) {
      Group group;
      LoadGroup(type, plain.data(), b, &group);
      EXPECT_EQ(Bits(F16ToF32(reader.D(b))), Bits(group.d));
      for (int i = 0; i < 32; ++i) {
        ASSERT_EQ(reader.Value(b, i), group.q[i]) << Traits(type).name << " " << b << " " << i;
      }
    }
  }
}

TEST(PackedLayoutTest, HoldsTheValuesOfAClassTogether) {
  const int64_t k = 256 + 70;
  std::vector<std::byte> plain(2 * k);
  for (uint16_t i = 0; i < k; ++i) std::memcpy(plain.data() + 2 * i, &i, 2);
  const std::vector<std::byte> packed = Pack(Type::kF16, k, plain);
  ASSERT_EQ(packed.size(), 2u * (256 + 128));
  const auto at = [&](size_t half) {
    uint16_t value;
    std::memcpy(&value, packed.data() + 2 * half, 2);
    return value;
  };
  EXPECT_EQ(at(8 * 5 + 3), 5 + 32 * 3);  // in the whole run
  EXPECT_EQ(at(256 + 2 * 9), 256 + 9);   // in the rest
  EXPECT_EQ(at(256 + 2 * 9 + 1), 256 + 9 + 32);
  EXPECT_EQ(at(256 + 64 + 2 * 5), 256 + 64 + 5);
  EXPECT_EQ(at(256 + 64 + 2 * 6), 0);  // beyond the row
}

TEST(PackedLayoutTest, KnowsWhatItDoesNotPack) {
  uint64_t bytes = 0;
  for (const Type type : {Type::kF32, Type::kQ5_0, Type::kMXFP4, Type::kQ8_KV}) {
    EXPECT_FALSE(HasPackedLayout(type));
    EXPECT_FALSE(PackedRowBytes(type, 256, &bytes));
  }
  EXPECT_FALSE(PackedRowBytes(Type::kQ8_0, 33, &bytes));
  EXPECT_FALSE(PackedRowBytes(Type::kQ4_K, 128, &bytes));
  EXPECT_FALSE(PackedRowBytes(Type::kF16, int64_t{1} << 31, &bytes));
  EXPECT_TRUE(PackedRowBytes(Type::kF16, 1, &bytes));
  EXPECT_EQ(bytes, 128u);
}

}  // namespace
}  // namespace trine::quant
