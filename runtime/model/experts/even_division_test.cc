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
  DivideEvenly(ids, part, whole, home, -1, out.data());
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

TEST(EvenDivisionTest, EveryChoiceHasOneDevice) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto whole = static_cast<int64_t>(2 + random() % 60);
    const auto part = static_cast<int64_t>(1 + random() % static_cast<uint32_t>(whole - 1));
    std::vector<int32_t> ids(1 + random() % 300);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(whole));
    const std::vector<int32_t> home = Divide(ids, part, whole, true);
    const std::vector<int32_t> rest = Divide(ids, part, whole, false);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(std::max(home[i], rest[i]), ids[i]);
      EXPECT_EQ(std::min(home[i], rest[i]), -1);
    }
  }
}

}  // namespace
}  // namespace trine
