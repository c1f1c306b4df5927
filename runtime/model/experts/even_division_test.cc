#include "runtime/model/experts/even_division.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> Divide(const std::vector<int32_t>& ids, int64_t part, int64_t whole,
                            bool home) {
  std::vector<int32_t> out(ids.size());
  EvenDivision(part, whole).Divide(ids, home, -1, out.data());
  return out;
}

TEST(EvenDivisionTest, GivesHomeItsPartOfATokensExperts) {
  const std::vector<int32_t> ids = {7, 2, 5, 0};
  for (int64_t part = 0; part <= 8; ++part) {
    int64_t at_home = 0;
    for (const int32_t id : Divide(ids, part, 8, true)) at_home += id >= 0 ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(at_home), static_cast<double>(part) / 2, 0.5) << part;
  }
}

TEST(EvenDivisionTest, KeepsTheTokensOfAnExpertTogether) {
  // Expert 1 has four of the six choices.
  const std::vector<int32_t> ids = {1, 3, 1, 0, 1, 1};
  EXPECT_THAT(Divide(ids, 1, 4, true), ElementsAre(-1, 3, -1, 0, -1, -1));
  EXPECT_THAT(Divide(ids, 1, 4, false), ElementsAre(1, -1, 1, -1, 1, 1));
  EXPECT_THAT(Divide(ids, 3, 4, true), ElementsAre(1, 3, 1, -1, 1, 1));
}

// One token has too few experts for a small part to show in each pass.
TEST(EvenDivisionTest, GivesHomeItsPartOfManyTokensOneByOne) {
  for (const int64_t part : {1, 7, 37, 64, 127}) {
    EvenDivision division(part, 128);
    std::mt19937 random(5);
    int64_t at_home = 0;
    constexpr int64_t kTokens = 1000, kUsed = 8;
    for (int64_t token = 0; token < kTokens; ++token) {
      std::vector<int32_t> ids(kUsed), out(kUsed);
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % 128);
      division.Divide(ids, true, -1, out.data());
      for (const int32_t id : out) at_home += id >= 0 ? 1 : 0;
      division.Divide(ids, false, -1, out.data());
    }
    EXPECT_NEAR(static_cast<double>(at_home), static_cast<double>(kTokens * kUsed * part) / 128, 9);
  }
}

// A prompt whose only expert goes to one device leaves next to nothing to make up for.
TEST(EvenDivisionTest, ALongPromptIsNotMadeUpFor) {
  EvenDivision division(64, 128);
  const std::vector<int32_t> prompt(1000, 3);
  std::vector<int32_t> out(prompt.size());
  division.Divide(prompt, true, -1, out.data());
  division.Divide(prompt, false, -1, out.data());
  int64_t at_home = 0;
  for (int token = 0; token < 10; ++token) {
    const std::vector<int32_t> ids = {1, 2, 4, 8, 16, 32, 64, 100};
    division.Divide(ids, true, -1, out.data());
    for (size_t i = 0; i < ids.size(); ++i) at_home += out[i] >= 0 ? 1 : 0;
    division.Divide(ids, false, -1, out.data());
  }
  EXPECT_NEAR(static_cast<double>(at_home), 40, 2);
}

TEST(EvenDivisionTest, EveryChoiceHasOneDevice) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto whole = static_cast<int64_t>(2 + random() % 60);
    const auto part = static_cast<int64_t>(1 + random() % static_cast<uint32_t>(whole - 1));
    std::vector<int32_t> ids(1 + random() % 300);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(whole));
    EvenDivision division(part, whole);
    std::vector<int32_t> home(ids.size()), rest(ids.size());
    for (int pass = 0; pass < 3; ++pass) {
      const bool home_first = random() % 2 == 0;
      division.Divide(ids, home_first, -1, home_first ? home.data() : rest.data());
      division.Divide(ids, !home_first, -1, home_first ? rest.data() : home.data());
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(std::max(home[i], rest[i]), ids[i]);
      EXPECT_EQ(std::min(home[i], rest[i]), -1);
    }
  }
}

}  // namespace
}  // namespace trine
