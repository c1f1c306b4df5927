#include "backends/vulkan/verdicts.h"

#include <filesystem>
#include <fstream>

#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trine/backend.h"

namespace trine::vulkan {
namespace {

namespace fs = std::filesystem;
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
  // As another process does.
  std::optional<Verdict> RecallFromFile(const VerdictKey& key) {
    ForgetVerdicts();
    return RecallVerdict(key, Path());
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "trine-verdicts-test";
  const VerdictKey key_ = VerdictKeyOf(Caps(), {});
  const Verdict good_ = {"", {TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE, "mapped files: no"}};
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
  EXPECT_EQ(found->imports.imports, good_.imports.imports);
  EXPECT_EQ(found->imports.refusal, good_.imports.refusal);
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
  DeviceCaps chip = Caps(), driver = Caps(), build = Caps();
  chip.uuid[0] ^= 1;
  driver.driver_version += 1;
  build.pipeline_cache_uuid[3] ^= 1;
  DeviceOptions tuned, limited;
  tuned.tuning = {{"int_dot", "0"}};
  limited.import = ImportLimit::kMemory;
  for (const VerdictKey& key :
       {VerdictKeyOf(chip, {}), VerdictKeyOf(driver, {}), VerdictKeyOf(build, {}),
        VerdictKeyOf(Caps(), tuned), VerdictKeyOf(Caps(), limited)}) {
    EXPECT_FALSE(RecallVerdict(key, Path()).has_value());
  }
  EXPECT_EQ(VerdictKeyOf(Caps(), {}), key_);
}

}  // namespace
}  // namespace trine::vulkan
