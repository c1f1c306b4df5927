#include "backends/vulkan/memory/keyed_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeyedFileTest : public ::testing::Test {
 protected:
  KeyedFileTest() { fs::remove_all(folder_); }
  ~KeyedFileTest() override { fs::remove_all(folder_); }

  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }
  static std::string Message(const absl::Status& status) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "trine-keyed-file-test";
  const std::vector<uint8_t> key_ = {1, 2, 3}, data_ = std::vector<uint8_t>(1000, 7);
};

TEST_F(KeyedFileTest, ReadsWhatWasWrittenUnderItsKey) {
  ASSERT_TRUE(KeyedFile(At("a"), key_).Write(data_).ok());
  EXPECT_EQ(KeyedFile(At("a"), key_).Read(), data_);
  EXPECT_EQ(KeyedFile(At("a"), {1, 2, 4}).Read(), std::nullopt);
  EXPECT_EQ(KeyedFile(At("b"), key_).Read(), std::nullopt);
  ASSERT_TRUE(KeyedFile(At("a"), key_).Write({}).ok());
  EXPECT_EQ(KeyedFile(At("a"), key_).Read(), std::vector<uint8_t>());
}

TEST_F(KeyedFileTest, IgnoresWhatIsNoFile) {
  fs::create_directories(At("folder"));
  EXPECT_EQ(KeyedFile(At("folder"), key_).Read(), std::nullopt);
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_EQ(KeyedFile(At("pipe"), key_).Read(), std::nullopt);  // does not wait for a writer
  ASSERT_TRUE(KeyedFile(At("pipe"), key_).Write(data_).ok());
  EXPECT_EQ(KeyedFile(At("pipe"), key_).Read(), data_);
}

TEST_F(KeyedFileTest, NamesTheStepThatFailed) {
  ASSERT_TRUE(KeyedFile(At("file"), key_).Write(data_).ok());
  EXPECT_THAT(Message(KeyedFile(At("file/below"), key_).Write(data_)),
              HasSubstr("can't be written: making a file beside it: Not a directory"));
  fs::create_directories(folder_ / "taken");
  EXPECT_THAT(Message(KeyedFile(At("taken"), key_).Write(data_)),
              HasSubstr("can't be written: renaming: Is a directory"));
  EXPECT_THAT(Names(), ElementsAre("file", "taken")) << "nothing is left";
}

// A limit on the file's size acts as a full disk does.
TEST_F(KeyedFileTest, TellsTheFirstFailureOfSeveral) {
  ASSERT_TRUE(KeyedFile(At("a"), key_).Write(data_).ok());
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 100, before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = KeyedFile(At("a"), key_).Write(std::vector<uint8_t>(1000, 8));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(Message(status), HasSubstr("can't be written: writing: File too large"));
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(KeyedFile(At("a"), key_).Read(), data_) << "the old one stays";
}

TEST_F(KeyedFileTest, KeepsTheNewestOfAKind) {
  fs::create_directories(folder_);
  const auto now = fs::file_time_type::clock::now();
  int age = 0;
  for (const char* name : {"chip-5.v", "chip-3.v", "chip-9.v", "chip-1.v", "chip-2.v"}) {
    std::ofstream(At(name)) << "x";
    fs::last_write_time(At(name), now - std::chrono::hours(age++));
  }
  for (const char* name : {"chip.v", "chip-1.pipelines", "other-1.v", "chip-1.v.abcdef"}) {
    std::ofstream(At(name)) << "x";
    fs::last_write_time(At(name), now - std::chrono::hours(99));
  }
  KeepNewest(At("chip-7.v"), 3);
  EXPECT_THAT(Names(), ElementsAre("chip-1.pipelines", "chip-1.v.abcdef", "chip-3.v", "chip-5.v",
                                   "chip-9.v", "chip.v", "other-1.v"));
  KeepNewest(At("none-1.v"), 0);
  KeepNewest(At("nodash"), 0);
  KeepNewest(At("missing/chip-1.v"), 0);
  EXPECT_EQ(Names().size(), 7u);
}

}  // namespace
}  // namespace trine::vulkan
