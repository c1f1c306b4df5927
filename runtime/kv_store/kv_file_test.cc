#include "runtime/kv_store/kv_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/kv_store/kv_test_util.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

using testing::HasSubstr;

class KvFileTest : public testing::Test {
 protected:
  const KvSpace space_ = SmallSpace();
  const std::vector<int32_t> tokens_ = RandomTokens(192, 1);
  const std::vector<KvBlock> blocks_ = KvBlocksOf(space_, tokens_);
  const KvBlock& block_ = blocks_[1];
  const std::vector<std::byte> head_ = EncodeKvFileHead(block_, *PayloadOf(block_));
  const uint64_t file_bytes_ = head_.size() + space_.block_bytes();

  std::string Error(const std::vector<std::byte>& head, uint64_t file_bytes) const {
    return std::string(ParseKvFileHead(head, file_bytes).status().message());
  }
  // Changes a field and fixes the hash, so that the checks after the hash are reached.
  template <class T>
  std::string ErrorWith(size_t at, T value) const {
    std::vector<std::byte> head = head_;
    std::memcpy(head.data() + at, &value, sizeof(value));
    const uint64_t hash = Hash64(head.data() + 40, head.size() - 40, Hash64(head.data(), 32, 0));
    std::memcpy(head.data() + 32, &hash, 8);
    return Error(head, file_bytes_);
  }
};

TEST_F(KvFileTest, IsReadAsItWasWritten) {
  EXPECT_EQ(head_.size(), KvFileHeadBytes(64));
  const auto head = ParseKvFileHead(head_, file_bytes_);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->payload_bytes, space_.block_bytes());
  EXPECT_EQ(head->key, block_.key);
  EXPECT_EQ(head->first_position, 64u);
  EXPECT_TRUE(CheckKvFileHead(*head, block_).ok());
}

TEST_F(KvFileTest, AnyFlippedBitIsNoticed) {
  for (size_t bit = 0; bit < 8 * head_.size(); ++bit) {
    std::vector<std::byte> changed = head_;
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(ParseKvFileHead(changed, file_bytes_).ok()) << bit;
  }
}

TEST_F(KvFileTest, CutAnywhereItIsRefused) {
  for (size_t n = 0; n < head_.size(); ++n) {
    // Its own allocation, so that a sanitizer notices reads beyond its end.
    const std::vector<std::byte> cut(head_.begin(), head_.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_FALSE(ParseKvFileHead(cut, n).ok()) << n;
    EXPECT_FALSE(ParseKvFileHead(cut, file_bytes_).ok()) << n;
    EXPECT_FALSE(ParseKvFileHead(head_, n).ok()) << n;
  }
  EXPECT_THAT(Error(head_, file_bytes_ - 1), HasSubstr("bytes, and says"));
}

TEST_F(KvFileTest, NumbersThatDoNotFitAreRefusedUnderARightHash) {
  EXPECT_EQ(ErrorWith(40, uint64_t{1}), "");  // the payload's hash, not checked here
  EXPECT_THAT(ErrorWith(0, uint64_t{1}), HasSubstr("no KV block"));
  EXPECT_THAT(ErrorWith(8, uint32_t{2}), HasSubstr("version 2"));
  EXPECT_THAT(ErrorWith(12, uint32_t{0x04030201}), HasSubstr("byte order"));
  EXPECT_THAT(ErrorWith(16, uint64_t{100}), HasSubstr("has a head of 100"));
  EXPECT_THAT(ErrorWith(16, ~uint64_t{0}), HasSubstr("has a head of"));
  EXPECT_THAT(ErrorWith(24, uint64_t{100}), HasSubstr("and says 100"));
  EXPECT_THAT(ErrorWith(48, uint64_t{100}), HasSubstr("for a block of 100"));
  EXPECT_THAT(ErrorWith(56, uint64_t{0}), HasSubstr("not its own"));
  EXPECT_THAT(ErrorWith(68, uint32_t{3}), HasSubstr("form 3"));
  EXPECT_EQ(ErrorWith(68, uint32_t{20}), "");  // q8_0, and not larger than the block
  EXPECT_THAT(ErrorWith(104, uint8_t{1}), HasSubstr("not its own"));
  EXPECT_THAT(ErrorWith(136, uint8_t{1}), HasSubstr("not its own"));
  EXPECT_THAT(ErrorWith(168, uint8_t{1}), HasSubstr("not its own"));
  EXPECT_THAT(ErrorWith(200, uint32_t{63}), HasSubstr("63 tokens"));
  EXPECT_THAT(ErrorWith(200, uint32_t{0}), HasSubstr("0 tokens"));
  EXPECT_THAT(ErrorWith(200, ~uint32_t{0}), HasSubstr("tokens"));
  EXPECT_THAT(ErrorWith(204, uint32_t{1}), HasSubstr("none should be"));
  EXPECT_THAT(ErrorWith(208, int32_t{-5}), HasSubstr("not its own"));
}

TEST_F(KvFileTest, AnotherBlockIsNotThisOne) {
  const auto error = [&](auto change) {
    auto head = ParseKvFileHead(head_, file_bytes_);
    change(&*head);
    return std::string(CheckKvFileHead(*head, block_).message());
  };
  EXPECT_EQ(error([](KvFileHead*) {}), "");
  EXPECT_THAT(error([](KvFileHead* h) { ++h->numerics_version; }), HasSubstr("numerics version 2"));
  EXPECT_THAT(error([](KvFileHead* h) { h->model = {}; }), HasSubstr("another model"));
  EXPECT_THAT(error([](KvFileHead* h) { h->space = {}; }), HasSubstr("another space"));
  EXPECT_THAT(error([](KvFileHead* h) { ++h->block_bytes; }), HasSubstr("another space"));
  EXPECT_THAT(error([](KvFileHead* h) { h->key = {}; }), HasSubstr("another block"));
  EXPECT_THAT(error([](KvFileHead* h) { h->parent = {}; }), HasSubstr("another block"));
  EXPECT_THAT(error([](KvFileHead* h) { ++h->first_position; }), HasSubstr("another block"));
  EXPECT_THAT(error([](KvFileHead* h) { ++h->tokens[63]; }), HasSubstr("other tokens"));
  EXPECT_THAT(error([](KvFileHead* h) { h->tokens.pop_back(); }), HasSubstr("other tokens"));
  EXPECT_THAT(error([](KvFileHead* h) { h->form = KvForm::kQ8_0; }), HasSubstr("form q8_0"));
}

TEST_F(KvFileTest, RandomBytesAreNoHead) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> data = head_;
    const bool behind_hash = i % 2 == 0;
    for (size_t k = 0; k < 1 + random() % 20; ++k) {
      data[random() % data.size()] = static_cast<std::byte>(random());
    }
    if (i % 3 == 0) data.resize(random() % (data.size() + 1));
    if (behind_hash && data.size() > 48) {
      const uint64_t hash = Hash64(data.data() + 40, data.size() - 40, Hash64(data.data(), 32, 0));
      std::memcpy(data.data() + 32, &hash, 8);
    }
    const auto head = ParseKvFileHead(data, file_bytes_);
    if (!head.ok() || data == head_) continue;
    // Only fields that the key does not cover can have changed.
    EXPECT_TRUE(behind_hash);
    EXPECT_EQ(head->key, KvBlockKey(head->space, head->parent, head->first_position, head->tokens));
  }
}

}  // namespace
}  // namespace trine
