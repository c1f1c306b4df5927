#include "runtime/pack_cache/hash64.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace trine {
namespace {

std::vector<std::byte> Counting(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

// Must never change, because it is written into files.
TEST(Hash64Test, IsWhatItAlwaysWas) {
  const std::vector<std::byte> bytes = Counting(100);
  EXPECT_EQ(Hash64(bytes.data(), 0, 0), 0xca6e313f06ee3d42);
  EXPECT_EQ(Hash64(bytes.data(), 100, 0), 0x6c46fdea9ca0cc8c);
  EXPECT_EQ(Hash64(bytes.data(), 100, 5), 0x1f65396d66f98d58);
}

TEST(Hash64Test, EveryBitEveryLengthAndTheSeedCount) {
  std::vector<std::byte> bytes = Counting(70);
  std::set<uint64_t> seen;
  size_t tried = 0;
  for (size_t n = 0; n <= bytes.size(); ++n, ++tried) seen.insert(Hash64(bytes.data(), n, 0));
  for (uint64_t seed = 1; seed < 100; ++seed, ++tried) seen.insert(Hash64(bytes.data(), 70, seed));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit, ++tried) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    seen.insert(Hash64(bytes.data(), bytes.size(), 0));
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
  EXPECT_EQ(seen.size(), tried);
}

TEST(Hash64Test, ZerosAtTheEndAreNotNothing) {
  const std::byte zeros[64] = {};
  std::set<uint64_t> seen;
  for (uint64_t n = 0; n <= 64; ++n) seen.insert(Hash64(zeros, n, 0));
  EXPECT_EQ(seen.size(), 65u);
}

TEST(HashRowsTest, AnyDivisionGivesTheSameSumAndAnyOrderOfRowsAnother) {
  std::vector<std::byte> bytes = Counting(10 * 24);
  const uint64_t whole = HashRows(bytes.data(), 24, 0, 10);
  for (uint64_t cut = 0; cut <= 10; ++cut) {
    EXPECT_EQ(HashRows(bytes.data(), 24, 0, cut) + HashRows(bytes.data() + 24 * cut, 24, cut, 10),
              whole);
  }
  std::swap_ranges(bytes.begin(), bytes.begin() + 24, bytes.begin() + 24);
  EXPECT_NE(HashRows(bytes.data(), 24, 0, 10), whole);
}

}  // namespace
}  // namespace trine
