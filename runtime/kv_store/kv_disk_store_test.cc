#include "runtime/kv_store/kv_disk_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/gguf/test_file.h"
#include "runtime/kv_store/kv_test_util.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class KvDiskStoreTest : public testing::Test {
 protected:
  std::unique_ptr<KvDiskStore> Open(KvDiskOptions options = {}) {
    options.log = [this](const std::string& text) { log_.push_back(text); };
    auto store = KvDiskStore::Open(path_, options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string PathOf(const KvBlock& block) const {
    const std::string hex = ToHex(block.key);
    return path_ + "/blocks-1/" + hex.substr(0, 2) + "/" + hex;
  }
  mode_t ModeOf(const std::string& path) const {
    struct stat st {};
    EXPECT_EQ(stat(path.c_str(), &st), 0) << path;
    return st.st_mode & 07777;
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& e : fs::recursive_directory_iterator(path_ + "/blocks-1")) {
      if (e.is_regular_file()) bytes += e.file_size();
    }
    return bytes;
  }
  void PutAll(KvDiskStore* store, const std::vector<KvBlock>& blocks) {
    for (const KvBlock& block : blocks) ASSERT_TRUE(store->Put(block, PayloadOf(block)).ok());
  }
  static bool Finds(KvDiskStore* store, const KvBlock& block) {
    const auto got = store->Get(block);
    if (got.ok()) {
      EXPECT_TRUE(IsPayloadOf(block, **got));
    }
    return got.ok();
  }

  gguf::TempFolder temp_;
  const std::string path_ = temp_.File("store");
  std::vector<std::string> log_;
  const KvSpace space_ = SmallSpace();
  const uint64_t file_bytes_ = space_.block_bytes() + KvFileHeadBytes(64);
  const std::vector<int32_t> tokens_ = RandomTokens(64 * 8, 1);
  const std::vector<KvBlock> blocks_ = KvBlocksOf(space_, tokens_);
};

TEST_F(KvDiskStoreTest, IsFoundAgainByTheNext) {
  auto store = Open();
  EXPECT_FALSE(store->Contains(blocks_[0].key));
  EXPECT_TRUE(absl::IsNotFound(store->Get(blocks_[0]).status()));
  PutAll(store.get(), blocks_);
  EXPECT_EQ(store->counters().writes, 8u);
  PutAll(store.get(), blocks_);
  EXPECT_EQ(store->counters().writes, 8u);
  store = Open();
  EXPECT_EQ(store->counters().blocks, 8u);
  EXPECT_EQ(store->counters().bytes, 8 * file_bytes_);
  EXPECT_EQ(BytesOnDisk(), 8 * file_bytes_);
  for (const KvBlock& block : blocks_) {
    EXPECT_TRUE(store->Contains(block.key));
    EXPECT_TRUE(Finds(store.get(), block));
  }
  EXPECT_EQ(store->counters().hits, 8u);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(KvDiskStoreTest, IsTheUsersAlone) {
  const mode_t before = umask(0);
  PutAll(Open().get(), blocks_);
  umask(before);
  EXPECT_EQ(ModeOf(path_), 0700u);
  EXPECT_EQ(ModeOf(path_ + "/blocks-1"), 0700u);
  EXPECT_EQ(ModeOf(path_ + "/temporary"), 0700u);
  EXPECT_EQ(ModeOf(fs::path(PathOf(blocks_[0])).parent_path()), 0700u);
  EXPECT_EQ(ModeOf(PathOf(blocks_[0])), 0600u);
  EXPECT_TRUE(fs::is_empty(path_ + "/temporary"));
}

TEST_F(KvDiskStoreTest, AFolderThatOthersMayWriteIsRefused) {
  PutAll(Open().get(), blocks_);
  const auto error = [&] {
    const auto store = KvDiskStore::Open(path_, {});
    return std::string(store.status().message());
  };
  EXPECT_EQ(error(), "");
  for (const char* part : {"", "/blocks-1", "/temporary", "/models-1"}) {
    for (const mode_t mode : {0770, 0702}) {
      chmod((path_ + part).c_str(), mode);
      EXPECT_THAT(error(), HasSubstr(std::string(part) + ": can be written by others"));
    }
    chmod((path_ + part).c_str(), 0700);
  }
  EXPECT_EQ(error(), "");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path_.c_str(), 1, 0), 0);
    EXPECT_THAT(error(), HasSubstr("belongs to another user (1, not 0)"));
    ASSERT_EQ(chown(path_.c_str(), 0, 0), 0);
  }
  fs::rename(path_ + "/temporary", path_ + "/elsewhere");
  fs::create_directory_symlink(path_ + "/elsewhere", path_ + "/temporary");
  EXPECT_THAT(error(), HasSubstr("cannot be opened as a folder"));
}

TEST_F(KvDiskStoreTest, AFileThatOthersMayHaveWrittenIsLeftAlone) {
  auto store = Open();
  PutAll(store.get(), blocks_);
  chmod(PathOf(blocks_[0]).c_str(), 0620);
  fs::rename(PathOf(blocks_[1]), temp_.File("moved"));
  fs::create_symlink(temp_.File("moved"), PathOf(blocks_[1]));
  for (const size_t i : {0, 1}) {
    EXPECT_TRUE(absl::IsPermissionDenied(store->Get(blocks_[i]).status()));
    EXPECT_TRUE(fs::exists(PathOf(blocks_[i])));
  }
  EXPECT_EQ(store->counters().refused, 2u);
  EXPECT_EQ(store->counters().damaged, 0u);
  ASSERT_EQ(log_.size(), 1u);  // logged once
  EXPECT_THAT(log_[0], HasSubstr("can be written by others"));
  store = Open();
  EXPECT_EQ(store->counters().blocks, 6u);
  // Put replaces the file by one of ours.
  ASSERT_TRUE(store->Put(blocks_[0], PayloadOf(blocks_[0])).ok());
  EXPECT_TRUE(Finds(store.get(), blocks_[0]));
  EXPECT_EQ(ModeOf(PathOf(blocks_[0])), 0600u);
}

TEST_F(KvDiskStoreTest, StaysWithinItsBoundAndKeepsParents) {
  KvDiskOptions options;
  options.max_bytes = 5 * file_bytes_;
  auto store = Open(options);
  PutAll(store.get(), blocks_);  // blocks after the fifth have no room
  EXPECT_EQ(store->counters().declined, 3u);
  EXPECT_EQ(BytesOnDisk(), 5 * file_bytes_);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(Finds(store.get(), blocks_[i]), i < 5);
  const std::vector<int32_t> tokens = RandomTokens(128, 7);
  PutAll(store.get(), KvBlocksOf(space_, tokens));
  EXPECT_EQ(store->counters().evictions, 2u);
  EXPECT_EQ(BytesOnDisk(), 5 * file_bytes_);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(Finds(store.get(), blocks_[i]), i < 3);
}

TEST_F(KvDiskStoreTest, OpenedWithLessRoomItGivesUpTheOldest) {
  std::vector<std::vector<int32_t>> texts;
  {
    auto store = Open();
    for (uint32_t i = 0; i < 6; ++i) {
      texts.push_back(RandomTokens(64, 100 + i));
      PutAll(store.get(), KvBlocksOf(space_, texts[i]));
      const timespec times[2] = {{0, UTIME_OMIT}, {1000 + i, 0}};
      utimensat(AT_FDCWD, PathOf(FirstKvBlock(space_, texts[i])).c_str(), times, 0);
    }
  }
  {
    auto store = Open();  // using a block makes it young again, for later processes too
    EXPECT_TRUE(Finds(store.get(), FirstKvBlock(space_, texts[0])));
    store->Touch(FirstKvBlock(space_, texts[1]).key);
  }
  KvDiskOptions options;
  options.max_bytes = 3 * file_bytes_;
  auto store = Open(options);
  EXPECT_EQ(store->counters().evictions, 3u);
  EXPECT_EQ(BytesOnDisk(), 3 * file_bytes_);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(Finds(store.get(), FirstKvBlock(space_, texts[i])), i == 0 || i == 1 || i == 5) << i;
  }
}

TEST_F(KvDiskStoreTest, TwoProcessesShareIt) {
  auto a = Open(), b = Open();
  PutAll(a.get(), blocks_);
  for (const KvBlock& block : blocks_) {
    EXPECT_TRUE(b->Contains(block.key));
    EXPECT_TRUE(Finds(b.get(), block));
  }
  EXPECT_EQ(b->counters().blocks, 8u);
  // One process removes a file: the other notices and can put it again.
  fs::remove(PathOf(blocks_[7]));
  EXPECT_TRUE(a->Contains(blocks_[7].key));
  EXPECT_FALSE(Finds(a.get(), blocks_[7]));
  EXPECT_FALSE(a->Contains(blocks_[7].key));
  PutAll(b.get(), blocks_);
  EXPECT_TRUE(Finds(a.get(), blocks_[7]));
  EXPECT_EQ(a->counters().damaged, 0u);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(KvDiskStoreTest, TheBoundMindsWhatOthersWrite) {
  KvDiskOptions options;
  options.max_bytes = 200 * file_bytes_;
  auto a = Open(options), b = Open(options);
  for (uint32_t i = 0; i < 300; ++i) {
    const std::vector<int32_t> tokens = RandomTokens(128, 1000 + i);
    const std::vector<KvBlock> blocks = KvBlocksOf(space_, tokens);
    PutAll(i % 2 == 0 ? a.get() : b.get(), blocks);
  }
  EXPECT_LE(BytesOnDisk(), (200 + 2 * 65) * file_bytes_);
  a->Rescan();
  EXPECT_LE(BytesOnDisk(), 200 * file_bytes_);
  EXPECT_EQ(a->counters().bytes, BytesOnDisk());
  EXPECT_EQ(a->counters().damaged + b->counters().damaged, 0u);
}

TEST_F(KvDiskStoreTest, LeftoversOfTheDeadGoThoseOfTheLivingStay) {
  Open();
  const std::string dead = path_ + "/temporary/1-1-dead", living = path_ + "/temporary/1-2-live";
  gguf::WriteWhole(dead, gguf::Bytes(100));
  gguf::WriteWhole(living, gguf::Bytes(100));
  const int fd = open(living.c_str(), O_RDONLY);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  Open();
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living));
  close(fd);
  Open();
  EXPECT_FALSE(fs::exists(living));
}

// Simulates a full disk by a limit on the size of files.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST_F(KvDiskStoreTest, AFullDiskIsToldOfOnceAndTriedAgainLater) {
  KvDiskOptions options;
  options.pause = std::chrono::milliseconds(500);
  auto store = Open(options);
  PutAll(store.get(), {blocks_[0]});
  {
    const FileLimit limit(1000);
    EXPECT_TRUE(absl::IsResourceExhausted(store->Put(blocks_[1], PayloadOf(blocks_[1]))));
    EXPECT_TRUE(absl::IsFailedPrecondition(store->Put(blocks_[1], PayloadOf(blocks_[1]))));
    EXPECT_TRUE(Finds(store.get(), blocks_[0]));
    std::this_thread::sleep_for(options.pause);
    EXPECT_TRUE(absl::IsResourceExhausted(store->Put(blocks_[1], PayloadOf(blocks_[1]))));
  }
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0], HasSubstr("not written for now"));
  EXPECT_EQ(store->counters().blocks, 1u);
  EXPECT_EQ(store->counters().errors, 2u);
  EXPECT_TRUE(fs::is_empty(path_ + "/temporary"));
  std::this_thread::sleep_for(options.pause);
  PutAll(store.get(), blocks_);
  for (const KvBlock& block : blocks_) EXPECT_TRUE(Finds(store.get(), block));
}

TEST_F(KvDiskStoreTest, AFolderThatCanNotBeWrittenCanBeRead) {
  PutAll(Open().get(), {blocks_[0]});
  fs::remove_all(path_ + "/temporary");
  auto store = Open();
  fs::remove_all(path_ + "/temporary");
  EXPECT_FALSE(store->Put(blocks_[1], PayloadOf(blocks_[1])).ok());
  EXPECT_TRUE(Finds(store.get(), blocks_[0]));
  EXPECT_FALSE(Finds(store.get(), blocks_[1]));
  if (geteuid() == 0) return;  // root may write everywhere
  chmod(path_.c_str(), 0500);
  store = Open();
  EXPECT_TRUE(absl::IsPermissionDenied(store->Put(blocks_[2], PayloadOf(blocks_[2]))));
  EXPECT_TRUE(Finds(store.get(), blocks_[0]));
  chmod(path_.c_str(), 0700);
}

TEST_F(KvDiskStoreTest, TheWholeFolderMayGoUnderIt) {
  auto store = Open();
  PutAll(store.get(), blocks_);
  fs::remove_all(path_);
  EXPECT_FALSE(store->Put(FirstKvBlock(space_, RandomTokens(64, 9)), PayloadOf(blocks_[0])).ok());
  for (const KvBlock& block : blocks_) EXPECT_FALSE(Finds(store.get(), block));
  EXPECT_EQ(store->counters().blocks, 0u);
}

TEST_F(KvDiskStoreTest, WhatCanBeNoFolderIsRefused) {
  gguf::WriteWhole(path_, gguf::Bytes(1));
  EXPECT_THAT(std::string(KvDiskStore::Open(path_, {}).status().message()),
              HasSubstr("cannot be opened as a folder"));
  EXPECT_FALSE(KvDiskStore::Open(path_ + "/below", {}).ok());
  EXPECT_FALSE(KvDiskStore::Open("", {}).ok());
}

TEST_F(KvDiskStoreTest, ManyThreadsAndTwoStores) {
  KvDiskOptions options;
  options.max_bytes = 30 * file_bytes_;
  auto a = KvDiskStore::Open(path_, options), b = KvDiskStore::Open(path_, options);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      KvDiskStore* store = t % 2 == 0 ? a->get() : b->get();
      for (uint32_t i = 0; i < 40; ++i) {
        const std::vector<int32_t> tokens = RandomTokens(256, (t + i) % 13);
        for (const KvBlock& block : KvBlocksOf(space_, tokens)) {
          if (Finds(store, block)) continue;
          EXPECT_TRUE(store->Put(block, PayloadOf(block)).ok());
        }
        if (i % 10 == t) store->Rescan();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto* store : {&a, &b}) {
    (**store)->Rescan();  // until then, blocks found of the other store may exceed the bound
    EXPECT_LE((**store)->counters().bytes, options.max_bytes);
    EXPECT_EQ((**store)->counters().damaged, 0u);
    EXPECT_EQ((**store)->counters().errors, 0u);
  }
}

}  // namespace
}  // namespace trine
