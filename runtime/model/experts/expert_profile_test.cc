#include "runtime/model/experts/expert_profile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

ExpertProfile Profile() {
  return {{"qwen3moe", 0x1234abcdull, 3, 4, 2}, {{{10, 2, 0, 8}, {0, 0, 0, 0}, {1, 1, 9, 9}}}};
}

class ExpertProfileTest : public ::testing::Test {
 protected:
  ExpertProfileTest()
      : folder_(fs::path(::testing::TempDir()) / absl::StrCat("expert_profile.", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ExpertProfileTest() override { fs::remove_all(folder_); }
  std::string Path() const { return (folder_ / "stats.json").string(); }
  void Put(const std::string& text) const { std::ofstream(Path()) << text; }

  const fs::path folder_;
};

TEST_F(ExpertProfileTest, IsReadAsItWasWritten) {
  const std::string text = FormatExpertProfile(Profile());
  EXPECT_THAT(text, HasSubstr("\"trine_expert_stats\": 1"));
  EXPECT_THAT(text, HasSubstr("\"tokens\": 10"));
  EXPECT_THAT(text, HasSubstr("\n    [10,2,0,8],\n    [],\n    [1,1,9,9]\n"));
  const auto again = ParseExpertProfile(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->model, Profile().model);
  EXPECT_EQ(again->counts.hits, Profile().counts.hits);
  EXPECT_EQ(FormatExpertProfile(*again), text);
}

TEST_F(ExpertProfileTest, WrongTextsAreRefusedWithASentence) {
  const std::string good = FormatExpertProfile(Profile());
  const auto with = [&](const std::string& from, const std::string& to) {
    EXPECT_THAT(good, HasSubstr(from));
    return absl::StrReplaceAll(good, {{from, to}});
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "it is not JSON"},
      {"{", "it is not JSON"},
      {"[1, 2]", "it is no profile of experts"},
      {"{\"trine_head\": 2}", "it is no profile of experts"},
      {with("stats\": 1", "stats\": 2"), "its format is not 1, the one that is known here"},
      {with("stats\": 1", "stats\": \"1\""), "its format is not 1, the one that is known here"},
      {with("\"model\"", "\"modell\""), "\"model\" is missing"},
      {with("\"hits\"", "\"hitz\""), "\"hits\" is missing"},
      {with("\"layers\":3", "\"layers\":4"), "it has the hits of 3 layers, and the model has 4"},
      {with("\"layers\":3", "\"layers\":-3"), "\"layers\" is no whole number from 1 on"},
      {with("\"layers\":3", "\"layers\":100000000"), "\"layers\" is not from 1 to 10000"},
      {with("\"experts\":4", "\"experts\":5"),
       "layer 0 has the hits of 4 experts, and the model has 5"},
      {with("\"experts\":4", "\"experts\":0"), "\"experts\" is not from 1 to 100000"},
      {with("\"used\":2", "\"used\":9"), "\"used\" is more than there are experts"},
      {with("000000001234abcd", "1234"), "\"hash\" is not 16 hexadecimal digits"},
      {with("qwen3moe", ""), "\"architecture\" is no name"},
      {with("[10,", "[-10,"), "the hits of expert 0 of layer 0 are no whole number"},
      {with("[10,", "[1.5,"), "the hits of expert 0 of layer 0 are no whole number"},
      {with("9,9]", "9,18446744073709551615]"), "the hits of expert 3 of layer 2 are no whole"},
      {with("9,9]", "9,1e300]"), "the hits of expert 3 of layer 2 are no whole number"},
      {with("9,9]", "9,\"9\"]"), "the hits of expert 3 of layer 2 are no whole number"},
      {with("9,9]", "9]"), "layer 2 has the hits of 3 experts, and the model has 4"},
      {with("[],", "7,"), "the hits of layer 1 are no list"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseExpertProfile(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
  EXPECT_TRUE(ParseExpertProfile(with("\"tokens\": 10", "\"tokens\": {}")).ok())
      << "the number of tokens is for people";
}

TEST_F(ExpertProfileTest, FilesThatCantBeReadAreNamed) {
  EXPECT_TRUE(absl::IsNotFound(ReadExpertProfile(Path()).status()));
  const absl::Status folder = ReadExpertProfile(folder_.string()).status();
  EXPECT_EQ(folder.message(), folder_.string() + ": it is no file");
  Put("{");
  EXPECT_EQ(ReadExpertProfile(Path()).status().message(), Path() + ": it is not JSON");
  Put(FormatExpertProfile(Profile()));
  EXPECT_TRUE(ReadExpertProfile(Path()).ok());
  if (geteuid() != 0) {
    ASSERT_EQ(chmod(Path().c_str(), 0), 0);
    EXPECT_EQ(ReadExpertProfile(Path()).status().message(), Path() + ": it can't be read");
  }
  fs::remove(Path());
  ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
  EXPECT_EQ(ReadExpertProfile(Path()).status().message(), Path() + ": it is no file");
}

TEST_F(ExpertProfileTest, ProfilesOfOtherModelsSayWhatDiffers) {
  ExpertModel model = Profile().model;
  EXPECT_TRUE(CheckFits(Profile(), model).ok());
  model.hash = 5;
  const absl::Status weights = CheckFits(Profile(), model);
  EXPECT_EQ(weights.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(weights.message()), HasSubstr("another model: one with other weights"));
  model.layers = 1;
  EXPECT_THAT(std::string(CheckFits(Profile(), model).message()),
              HasSubstr("qwen3moe with 2 of 4 experts in 3 layers, and this one is qwen3moe with 2 "
                        "of 4 experts in 1 layer"));
}

TEST_F(ExpertProfileTest, RunsAddUp) {
  const ExpertCounts run = {{{1, 0, 0, 1}, {2, 0, 0, 0}, {0, 0, 0, kMostHits}}};
  ExpertProfile read = Profile();
  read.counts = {{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}};
  ASSERT_TRUE(AddToExpertProfile(Path(), read, run).ok()) << "there is no file yet";
  ASSERT_TRUE(AddToExpertProfile(Path(), read, run).ok());
  const auto twice = ReadExpertProfile(Path());
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ(twice->counts.hits[0], (std::vector<uint64_t>{2, 0, 0, 2}));
  EXPECT_EQ(twice->counts.hits[1][0], 4u);
  EXPECT_EQ(twice->counts.hits[2][3], kMostHits) << "no number grows beyond it";
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path(), Path()) << "no other file is left";
  }
}

TEST_F(ExpertProfileTest, CommandsThatEndTogetherLoseNothing) {
  const ExpertCounts run = {{{1, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}};
  std::vector<std::thread> threads;
  constexpr int kThreads = 8;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(AddToExpertProfile(Path(), Profile(), run).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadExpertProfile(Path())->counts.hits[0][0], 10u + kThreads);
}

TEST_F(ExpertProfileTest, AFolderThatStaysLockedIsAnError) {
  Put(FormatExpertProfile(Profile()));
  const int fd = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  const absl::Status status = AddToExpertProfile(Path(), Profile(), Profile().counts);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), Path() + ": others have locked its folder for too long");
  EXPECT_EQ(ReadExpertProfile(Path())->counts.hits, Profile().counts.hits);
  close(fd);
  EXPECT_TRUE(AddToExpertProfile(Path(), Profile(), Profile().counts).ok());
}

TEST_F(ExpertProfileTest, WhatIsNoProfileAnyMoreStays) {
  const ExpertCounts run = Profile().counts;
  ExpertProfile other = Profile();
  other.model.hash = 7;
  for (const std::string& text : {std::string("a diary"), FormatExpertProfile(other)}) {
    Put(text);
    const absl::Status status = AddToExpertProfile(Path(), Profile(), run);
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path()));
    std::ifstream now(Path());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(now), {}), text);
  }
}

TEST(TopTenthShareTest, CountsTheMostChosenOfEachLayer) {
  EXPECT_EQ(TopTenthShare({{{0, 0}, {0, 0}}}), 0);
  EXPECT_DOUBLE_EQ(TopTenthShare({{{6, 2}, {1, 1}}}), 0.7) << "at least one of each layer";
  std::vector<uint64_t> twenty(20, 1);
  twenty[3] = twenty[7] = 41;
  EXPECT_DOUBLE_EQ(TopTenthShare({{twenty}}), 0.82);
}

TEST(ExpertCountsTest, TellWhatARunAdded) {
  ExpertHits hits(1, 3);
  hits.Add(0, 2, 5);
  const ExpertCounts before = hits.Snapshot();
  hits.Count(0, std::vector<int32_t>{2, 0});
  EXPECT_EQ(hits.Snapshot().Since(before).hits[0], (std::vector<uint64_t>{1, 0, 1}));
  EXPECT_EQ(hits.choices(), 2u) << "hits of the past are no choices";
}

}  // namespace
}  // namespace trine
