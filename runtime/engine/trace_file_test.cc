#include "runtime/engine/trace_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace trine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TraceFileTest : public ::testing::Test {
 protected:
  TraceFileTest()
      : folder_(fs::path(::testing::TempDir()) / ("trace." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~TraceFileTest() override { fs::remove_all(folder_); }

  std::string Read() const {
    std::stringstream text;
    text << std::ifstream(folder_ / "t.json").rdbuf();
    return text.str();
  }

  const fs::path folder_;
};

TEST_F(TraceFileTest, WithoutAFileItStaysInMemory) {
  auto file = TraceFile::Create("", 2);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto now = Trace::Clock::now();
  for (int i = 0; i < 3; ++i) (*file)->trace()->Add((*file)->engine_track(), "load", now, now);
  EXPECT_TRUE((*file)->Write().ok());
  EXPECT_EQ((*file)->trace()->Since(now).size(), 2u);
}

TEST_F(TraceFileTest, IsWrittenWhenThereIsSomethingNew) {
  auto file = TraceFile::Create((folder_ / "t.json").string());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(fs::is_empty(folder_));
  const auto now = Trace::Clock::now();
  (*file)->trace()->Add((*file)->lane_track(), "sample", now, now);
  ASSERT_TRUE((*file)->Write().ok());
  EXPECT_THAT(Read(), HasSubstr("sample"));
  EXPECT_TRUE(nlohmann::json::accept(Read()));
  fs::remove(folder_ / "t.json");
  ASSERT_TRUE((*file)->Write().ok());
  EXPECT_TRUE(fs::is_empty(folder_));
  (*file)->trace()->Mark((*file)->engine_track(), "lost", now, "gone");
  ASSERT_TRUE((*file)->Write().ok());
  EXPECT_THAT(Read(), HasSubstr("gone"));
}

TEST_F(TraceFileTest, WhatCannotBeWrittenIsSaidAtOnce) {
  const auto missing = TraceFile::Create((folder_ / "no" / "t.json").string());
  EXPECT_TRUE(absl::IsUnavailable(missing.status())) << missing.status();
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("the trace "));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("cannot be created"));
  const auto folder = TraceFile::Create(folder_.string());
  EXPECT_TRUE(absl::IsInvalidArgument(folder.status())) << folder.status();
}

TEST_F(TraceFileTest, AFolderThatGoesAwayIsAnError) {
  fs::create_directories(folder_ / "in");
  auto file = TraceFile::Create((folder_ / "in" / "t.json").string());
  ASSERT_TRUE(file.ok()) << file.status();
  fs::remove_all(folder_ / "in");
  EXPECT_TRUE(absl::IsUnavailable((*file)->Write()));
}

}  // namespace
}  // namespace trine
