#include "runtime/base/file_lock.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class FileLockTest : public ::testing::Test {
 protected:
  FileLockTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("file_lock." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FileLockTest() override { std::filesystem::remove_all(folder_); }
  std::string Path() const { return (folder_ / "file").string(); }

  const std::filesystem::path folder_;
};

TEST_F(FileLockTest, OneHolderAtATime) {
  for (const auto kind : {FileLock::Kind::kFile, FileLock::Kind::kFolder}) {
    FileLock second(Path(), kind);
    {
      FileLock first(Path(), kind);
      EXPECT_TRUE(first.Lock().ok());
      EXPECT_TRUE(absl::IsDeadlineExceeded(second.Lock(milliseconds(30))));
    }
    EXPECT_TRUE(second.Lock(milliseconds(0)).ok());
  }
}

TEST_F(FileLockTest, OnlyALockOfAFileMakesTheFile) {
  FileLock folder(Path(), FileLock::Kind::kFolder);
  EXPECT_TRUE(folder.Lock().ok());
  EXPECT_FALSE(std::filesystem::exists(Path()));
  FileLock file(Path(), FileLock::Kind::kFile);
  EXPECT_TRUE(file.Lock().ok());
  EXPECT_TRUE(std::filesystem::exists(Path()));
}

TEST_F(FileLockTest, WhatCannotBeLockedSaysWhy) {
  for (const auto kind : {FileLock::Kind::kFile, FileLock::Kind::kFolder}) {
    FileLock lock(Path() + "/none/file", kind);
    const absl::Status status = lock.Lock();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("it can't be locked: No such"));
  }
}

}  // namespace
}  // namespace trine
