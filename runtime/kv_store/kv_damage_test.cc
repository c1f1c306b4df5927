// Damaged and foreign files: whatever is wrong with one, it is never used.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "runtime/gguf/test_file.h"
#include "runtime/kv_store/kv_disk_store.h"
#include "runtime/kv_store/kv_test_util.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using gguf::Bytes;

class KvDamageTest : public testing::Test {
 protected:
  KvDamageTest() {
    store_ = *KvDiskStore::Open(path_, {});
    for (const KvBlock& block : blocks_) {
      EXPECT_TRUE(store_->Put(block, PayloadOf(block)).ok());
    }
    file_ = gguf::ReadWhole(PathOf(blocks_[1]));
    EXPECT_EQ(file_.size(), KvFileHeadBytes(64) + space_.block_bytes());
  }
  std::string PathOf(const KvBlock& block) const {
    const std::string hex = ToHex(block.key);
    return path_ + "/blocks-1/" + hex.substr(0, 2) + "/" + hex;
  }
  // Writes `bytes` in the place of block 1. Expects a store that knows the block, or with `reopen`
  // one that opens the folder, to refuse and remove it.
  void ExpectRefused(const Bytes& bytes, bool reopen, const std::string& what) {
    gguf::WriteWhole(PathOf(blocks_[1]), bytes);
    fs::permissions(PathOf(blocks_[1]), fs::perms::owner_read | fs::perms::owner_write);
    if (reopen) store_ = *KvDiskStore::Open(path_, {});
    EXPECT_FALSE(store_->Get(blocks_[1]).ok()) << what;
    EXPECT_FALSE(fs::exists(PathOf(blocks_[1]))) << what;
    EXPECT_FALSE(store_->Contains(blocks_[1].key)) << what;
    ++refused_;
    if (reopen) refused_ = 1;
    EXPECT_EQ(store_->counters().damaged, refused_) << what;
  }

  gguf::TempFolder temp_;
  const std::string path_ = temp_.File("store");
  const KvSpace space_ = SmallSpace();
  const std::vector<int32_t> tokens_ = RandomTokens(192, 1);
  const std::vector<KvBlock> blocks_ = KvBlocksOf(space_, tokens_);
  std::unique_ptr<KvDiskStore> store_;
  Bytes file_;
  uint64_t refused_ = 0;
};

TEST_F(KvDamageTest, AFlippedBitAnywhere) {
  const size_t head = KvFileHeadBytes(64);
  std::mt19937 random(1);
  for (size_t i = 0; i < head + 400; ++i) {
    const size_t at = i < head ? i : head + random() % space_.block_bytes();
    Bytes changed = file_;
    changed[at] ^= std::byte{1} << random() % 8;
    ExpectRefused(changed, i % 50 == 0 && i < head, "byte " + std::to_string(at));
  }
  for (const size_t at : {head, file_.size() - 1}) {
    Bytes changed = file_;
    changed[at] ^= std::byte{0x80};
    ExpectRefused(changed, false, "byte " + std::to_string(at));
  }
  // The other blocks are unchanged.
  EXPECT_TRUE(IsPayloadOf(blocks_[0], **store_->Get(blocks_[0])));
  EXPECT_TRUE(IsPayloadOf(blocks_[2], **store_->Get(blocks_[2])));
  ASSERT_TRUE(store_->Put(blocks_[1], PayloadOf(blocks_[1])).ok());
  EXPECT_TRUE(IsPayloadOf(blocks_[1], **store_->Get(blocks_[1])));
}

TEST_F(KvDamageTest, CutOrLengthened) {
  const size_t head = KvFileHeadBytes(64);
  std::vector<size_t> lengths = {0,
                                 1,
                                 7,
                                 8,
                                 16,
                                 31,
                                 32,
                                 40,
                                 199,
                                 207,
                                 208,
                                 300,
                                 head - 1,
                                 head,
                                 head + 1,
                                 4095,
                                 4096,
                                 file_.size() / 2,
                                 file_.size() - 1,
                                 file_.size() + 1,
                                 2 * file_.size()};
  for (const size_t n : lengths) {
    for (const bool reopen : {false, true}) {
      Bytes cut = file_;
      cut.resize(n);
      ExpectRefused(cut, reopen, "length " + std::to_string(n));
    }
  }
}

// What a power cut may leave: the right size, and zeros from some page on.
TEST_F(KvDamageTest, ZerosInPlaceOfPages) {
  for (size_t from = 0; from < file_.size(); from += 4096) {
    Bytes zeros = file_;
    std::fill(zeros.begin() + static_cast<ptrdiff_t>(from), zeros.end(), std::byte{0});
    ExpectRefused(zeros, false, "from " + std::to_string(from));
  }
}

TEST_F(KvDamageTest, ARightFileUnderAnotherName) {
  ExpectRefused(gguf::ReadWhole(PathOf(blocks_[0])), false, "its parent");
  ExpectRefused(gguf::ReadWhole(PathOf(blocks_[2])), true, "its child");
  const KvSpace other = SmallSpace("somebody else");
  const std::vector<KvBlock> theirs = KvBlocksOf(other, tokens_);
  for (const KvBlock& block : theirs) ASSERT_TRUE(store_->Put(block, PayloadOf(block)).ok());
  refused_ = 1;
  ExpectRefused(gguf::ReadWhole(PathOf(theirs[1])), false, "another space's");
}

TEST_F(KvDamageTest, RandomBytes) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    Bytes bytes(random() % (2 * file_.size()));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    // Keeps the magic and version, or some more of a valid file.
    const size_t kept = i % 3 == 0 ? 0 : i % 3 == 1 ? 12 : random() % file_.size();
    std::copy_n(file_.begin(), std::min(kept, bytes.size()), bytes.begin());
    ExpectRefused(bytes, i % 10 == 0, "random " + std::to_string(i));
  }
}

TEST_F(KvDamageTest, OtherThingsInTheFolderAreInNobodysWay) {
  gguf::WriteWhole(path_ + "/note", file_);
  gguf::WriteWhole(path_ + "/blocks-1/note", file_);
  gguf::WriteWhole(path_ + "/blocks-1/zz", file_);
  const std::string folder = fs::path(PathOf(blocks_[0])).parent_path();
  gguf::WriteWhole(folder + "/note", file_);
  fs::create_directory(folder + "/" + std::string(64, '0'));
  fs::create_directory(path_ + "/blocks-1/00");
  fs::create_directory(path_ + "/blocks-1/00/" + std::string(64, '0'));
  store_ = *KvDiskStore::Open(path_, {});
  EXPECT_EQ(store_->counters().blocks, 3u);
  EXPECT_EQ(store_->counters().damaged, 0u);
  EXPECT_TRUE(fs::exists(folder + "/note"));
}

}  // namespace
}  // namespace trine
