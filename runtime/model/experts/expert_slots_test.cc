#include "runtime/model/experts/expert_slots.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/model/experts/expert_hits.h"

namespace trine {
namespace {

using Ids = std::vector<int32_t>;

Ids Divided(const ExpertSlots& slots, const Ids& ids, bool home) {
  Ids out(ids.size());
  slots.Divide(ids, home, out.data());
  return out;
}

// Returns the experts that home has, in their order.
Ids AtHome(const ExpertSlots& slots) {
  Ids experts;
  for (int64_t slot = 0; slot < slots.slots(); ++slot) experts.push_back(slots.InSlot(slot));
  std::sort(experts.begin(), experts.end());
  return experts;
}

TEST(ExpertSlotsTest, EachChosenExpertIsOnOneDevice) {
  ExpertSlots slots(6, 2);
  const Ids ids = {5, 0, 1, 3};
  EXPECT_EQ(Divided(slots, ids, true), (Ids{-1, 0, 1, -1}));
  EXPECT_EQ(Divided(slots, ids, false), (Ids{5, -1, -1, 3}));
  slots.Await(0, 5);  // while an expert is on its way, the other device has both
  EXPECT_EQ(Divided(slots, ids, true), (Ids{-1, -1, 1, -1}));
  EXPECT_EQ(Divided(slots, ids, false), (Ids{5, 0, -1, 3}));
  slots.Fill(0, 5);
  EXPECT_EQ(Divided(slots, ids, true), (Ids{0, -1, 1, -1}));
  EXPECT_EQ(Divided(slots, ids, false), (Ids{-1, 0, -1, 3}));
  slots.Fill(1, 3);  // in place of an expert that is there
  EXPECT_EQ(Divided(slots, ids, true), (Ids{0, -1, -1, 1}));
}

TEST(ExpertSlotsTest, ExchangesTheLeastChosenForTheMostChosen) {
  ExpertSlots slots(5, 2);
  EXPECT_FALSE(slots.Best().has_value()) << "nothing has been chosen yet";
  for (int i = 0; i < 30; ++i) slots.Notice(Ids{4, 1}, 1);
  for (int i = 0; i < 12; ++i) slots.Notice(Ids{3}, 1);
  const auto best = slots.Best();
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->expert, 4);
  EXPECT_EQ(best->slot, 0);
  EXPECT_GT(best->gain, 25);
  slots.Fill(best->slot, best->expert);
  EXPECT_FALSE(slots.Best().has_value()) << "3 is chosen less often than 4 and 1";
}

// While an expert is on its way, the next best exchange is another slot's and another expert's.
TEST(ExpertSlotsTest, DoesNotBringAnExpertTwice) {
  ExpertSlots slots(6, 2);
  for (int i = 0; i < 30; ++i) slots.Notice(Ids{5, 4}, 1);
  for (int i = 0; i < 10; ++i) slots.Notice(Ids{5}, 1);
  const auto first = slots.Best();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->expert, 5);
  slots.Await(first->slot, first->expert);
  const auto second = slots.Best();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->expert, 4);
  EXPECT_NE(second->slot, first->slot);
  slots.Await(second->slot, second->expert);
  EXPECT_FALSE(slots.Best().has_value()) << "all slots await an expert";
  slots.Fill(first->slot, first->expert);
  slots.Fill(second->slot, second->expert);
  EXPECT_EQ(AtHome(slots), (Ids{4, 5}));
  EXPECT_FALSE(slots.Best().has_value());
}

// An expert that is chosen about as often does not replace another one, back and forth.
TEST(ExpertSlotsTest, LittleIsGainedByLikes) {
  ExpertSlots slots(2, 1);
  for (int i = 0; i < 200; ++i) {
    slots.Notice(Ids{0}, 1);
    slots.Notice(Ids{1}, 1);
    if (i % 3 == 0) slots.Notice(Ids{1}, 1);
    EXPECT_FALSE(slots.Best().has_value()) << i;
  }
}

TEST(ExpertSlotsTest, ForgetsWhatWasLongAgo) {
  ExpertSlots slots(3, 1);
  for (int i = 0; i < 1000; ++i) slots.Notice(Ids{0}, 1);
  EXPECT_FALSE(slots.Best().has_value());
  for (int i = 0; i < 200; ++i) slots.Notice(Ids{2}, 64);
  ASSERT_TRUE(slots.Best().has_value());
  EXPECT_EQ(slots.Best()->expert, 2);
}

TEST(ExpertSlotsTest, BeginsWithTheMostChosen) {
  ExpertSlots slots(6, 3);
  slots.Expect({0, 7, 1, 9, 2, 8});
  for (const ExpertSlots::Exchange& e : slots.ToTheMostChosen()) slots.Fill(e.slot, e.expert);
  EXPECT_EQ(AtHome(slots), (Ids{1, 3, 5}));
  EXPECT_TRUE(slots.ToTheMostChosen().empty());
  EXPECT_EQ(slots.InSlot(1), 1) << "what is there stays where it is";
  ExpertSlots unknown(6, 3);
  unknown.Expect(std::vector<uint64_t>(6, 0));
  EXPECT_TRUE(unknown.ToTheMostChosen().empty());
}

TEST(HitShareTest, SumsTheMostChosen) {
  EXPECT_DOUBLE_EQ(HitShare({1, 6, 0, 3}, 2), 0.9);
  EXPECT_DOUBLE_EQ(HitShare({0, 0, 0, 0}, 1), 0.25) << "none is preferred";
  EXPECT_DOUBLE_EQ(HitShare({1, 1}, 5), 1);
}

}  // namespace
}  // namespace trine
