#include "backends/vulkan/exec/verdicts.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trine/backend.h"

namespace trine::vulkan {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerdictsTest : public ::testing::Test {
 protected:
  VerdictsTest() {
    fs::remove_all(folder_);
    ForgetVerdicts();
  }
  ~VerdictsTest() override { fs::remove_all(folder_); }

  static DeviceCaps Caps() { return MakeDeviceCaps(testing::IntelXe1()); }
  std::string Path() const { return (folder_ / "sub" / "device.verdict").string(); }
  // Recalls a verdict as another process would.
  std::optional<Verdict> RecallFromFile(const VerdictKey& key) {
    ForgetVerdicts();
    return RecallVerdict(key, Path());
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "trine-verdicts-test";
  const VerdictKey key_ = VerdictKeyOf(Caps(), {});
  const Verdict good_ = {"", {{KindTrial::kTaken, ""}, {KindTrial::kRefused, "no"}}};
};

TEST_F(VerdictsTest, NothingIsKnownAtFirst) {
  EXPECT_FALSE(RecallVerdict(key_, Path()).has_value());
  EXPECT_FALSE(RecallVerdict(key_, "").has_value());
}

TEST_F(VerdictsTest, TheProcessRemembersWithoutAFile) {
  RememberVerdict(key_, "", {"rope", {}});
  const auto found = RecallVerdict(key_, "");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->failure, "rope");
}

TEST_F(VerdictsTest, AFileRemembersForOtherProcesses) {
  RememberVerdict(key_, Path(), good_);
  const auto found = RecallFromFile(key_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->failure, "");
  EXPECT_TRUE(found->imports.settled());
  EXPECT_EQ(found->imports.Flags(),
            static_cast<uint32_t>(TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE));
  EXPECT_EQ(found->imports.Refusal(), "mapped files: no");
}

// The self-test's result stays valid whatever the imports did; only those are tried again.
TEST_F(VerdictsTest, UntriedImportsAreRememberedAsThat) {
  RememberVerdict(key_, Path(), {"", {{KindTrial::kRefused, "lost"}, {}}});
  const auto found = RecallFromFile(key_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->failure, "");
  EXPECT_FALSE(found->imports.settled());
  EXPECT_EQ(found->imports.memory.outcome, KindTrial::kRefused);
  EXPECT_EQ(found->imports.memory.reason, "lost");
  EXPECT_EQ(found->imports.files.outcome, KindTrial::kUntried);
}

TEST_F(VerdictsTest, AFailureIsTriedAgainByTheNextProcess) {
  RememberVerdict(key_, Path(), {"rope", {}});
  EXPECT_FALSE(fs::exists(Path()));
  EXPECT_FALSE(RecallFromFile(key_).has_value());
}

TEST_F(VerdictsTest, ADamagedFileIsNone) {
  RememberVerdict(key_, Path(), good_);
  std::string whole;
  {
    std::ifstream in(Path(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto write = [&](const std::string& bytes) {
    std::ofstream(Path(), std::ios::binary | std::ios::trunc) << bytes;
  };
  for (size_t n = 0; n < whole.size(); ++n) {
    write(whole.substr(0, n));
    EXPECT_FALSE(RecallFromFile(key_).has_value()) << "cut to " << n;
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 1);
    write(changed);
    EXPECT_FALSE(RecallFromFile(key_).has_value()) << "byte " << n;
  }
  write(whole + "x");
  EXPECT_FALSE(RecallFromFile(key_).has_value());
  write(whole);
  EXPECT_TRUE(RecallFromFile(key_).has_value());
}

TEST_F(VerdictsTest, NothingIsLeftBesideTheFile) {
  RememberVerdict(key_, Path(), good_);
  RememberVerdict(key_, Path(), good_);
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder_ / "sub")) {
    if (entry.path() != Path()) others.push_back(entry.path());
  }
  EXPECT_THAT(others, IsEmpty());
}

TEST_F(VerdictsTest, WhatCanChangeAVerdictChangesItsKey) {
  RememberVerdict(key_, Path(), good_);
  DeviceCaps chip = Caps(), driver = Caps(), build = Caps(), version = Caps(), shared = Caps();
  chip.uuid[0] ^= 1;
  driver.driver_version += 1;
  build.pipeline_cache_uuid[3] ^= 1;
  version.api_version = VK_API_VERSION_1_2;
  shared.max_shared_bytes = 16384;  // makes the tiles of products smaller
  DeviceOptions limited, hasty;
  limited.import = ImportLimit::kMemory;
  hasty.timeout = std::chrono::milliseconds(20);
  std::set<VerdictKey> keys = {key_,
                               VerdictKeyOf(chip, {}),
                               VerdictKeyOf(driver, {}),
                               VerdictKeyOf(build, {}),
                               VerdictKeyOf(version, {}),
                               VerdictKeyOf(shared, {}),
                               VerdictKeyOf(Caps(), limited),
                               VerdictKeyOf(Caps(), hasty)};
  EXPECT_EQ(keys.size(), 8u);
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"int_dot", "0"},
           {"fuse", "0"},
           {"subgroup_size", "8"},
           {"elementwise_workgroup", "64"},
           {"gemv_workgroup", "64"},
           {"gemv_rows", "4"},
           {"submit_operations", "1000"},
           {"submit_dispatches", "3"},
           {"subgroup_size", "7"}}) {  // a size that the device does not have
    DeviceOptions options;
    options.tuning = {{name, value}};
    const VerdictKey key = VerdictKeyOf(Caps(), options);
    EXPECT_TRUE(keys.insert(key).second) << name;
    EXPECT_FALSE(RecallVerdict(key, Path()).has_value()) << name;
  }
  EXPECT_EQ(VerdictKeyOf(Caps(), {}), key_);
}

TEST_F(VerdictsTest, ItIsTheTuningThatCountsNotHowItCame) {
  const Tuning tuning = ChooseTuning(Caps());
  DeviceOptions same, twice;
  same.tuning = {{"gemv_rows", std::to_string(tuning.gemv_rows)}};
  twice.tuning = {{"fuse", "0"}, {"fuse", "1"}};
  EXPECT_EQ(VerdictKeyOf(Caps(), same), key_);
  EXPECT_EQ(VerdictKeyOf(Caps(), twice), key_);
}

// The verdict of an older self-test must not keep a newer one from running.
TEST_F(VerdictsTest, AnotherVersionTestsAgain) {
  const std::string key(key_.begin(), key_.end());
  EXPECT_THAT(key, HasSubstr(TRINE_VERSION));
}

TEST_F(VerdictsTest, EachUseOfADeviceHasAFile) {
  setenv("TRINE_VULKAN_CACHE", folder_.c_str(), 1);
  DeviceOptions tuned;
  tuned.tuning = {{"int_dot", "0"}};
  const VerdictKey other = VerdictKeyOf(Caps(), tuned);
  const std::string path = DefaultVerdictPath(Caps(), key_);
  const std::string other_path = DefaultVerdictPath(Caps(), other);
  EXPECT_NE(path, other_path);
  RememberVerdict(key_, path, good_);
  RememberVerdict(other, other_path, good_);
  ForgetVerdicts();
  EXPECT_TRUE(RecallVerdict(key_, path).has_value());
  EXPECT_TRUE(RecallVerdict(other, other_path).has_value());
  setenv("TRINE_VULKAN_CACHE", "off", 1);
  EXPECT_EQ(DefaultVerdictPath(Caps(), key_), "");
  unsetenv("TRINE_VULKAN_CACHE");
}

TEST_F(VerdictsTest, AFewFilesOfADeviceAreKept) {
  setenv("TRINE_VULKAN_CACHE", folder_.c_str(), 1);
  for (uint32_t rows = 1; rows <= kVerdictFiles + 5; ++rows) {
    DeviceOptions options;
    options.tuning = {{"gemv_rows", std::to_string(rows)}};
    const VerdictKey key = VerdictKeyOf(Caps(), options);
    RememberVerdict(key, DefaultVerdictPath(Caps(), key), good_);
    EXPECT_TRUE(fs::exists(DefaultVerdictPath(Caps(), key))) << "the last one stays";
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}),
            static_cast<ptrdiff_t>(kVerdictFiles));
  unsetenv("TRINE_VULKAN_CACHE");
}

}  // namespace
}  // namespace trine::vulkan
