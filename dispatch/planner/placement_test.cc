#include "dispatch/planner/placement.h"

#include "dispatch/planner/planner_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr NominalRequest kRequest = {1024, 3};  // two prefill passes and three decode passes

std::string Wrong(const PlanProblem& problem, const std::vector<PlacedRange>& ranges) {
  return std::string(EvaluatePlacement(problem, kRequest, ranges).status().message());
}

TEST(PlacementTest, AddsUpTimes) {
  const PlanProblem problem = TestProblem(4, {{"cpu", 1000}, {"dgpu0", 100}}, 50);
  const auto p = EvaluatePlacement(problem, kRequest, {{{0, 1}, 0}, {{1, 4}, 1}});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(Text(problem, *p), "E cpu[0,1) | dgpu0[1,4) H");
  EXPECT_EQ(p->segments[0].decode_ns, 10 + 100 + 1000);
  EXPECT_EQ(p->segments[0].decode_transfer_ns, 0);
  EXPECT_EQ(p->segments[1].decode_ns, 10 + 300 + 10);
  EXPECT_EQ(p->segments[1].prefill_ns, 10 + 3000 + 100);
  EXPECT_EQ(p->segments[1].prefill_transfer_ns, 50);
  EXPECT_EQ(p->decode_ns, 1110 + 50 + 320);
  EXPECT_EQ(p->prefill_ns, 11010 + 50 + 3110);
  EXPECT_EQ(p->request_ns, 3 * p->decode_ns + 2 * p->prefill_ns);
  EXPECT_EQ(p->longest_stage_ns, 3 * 1110 + 2 * 11010);
  EXPECT_EQ(p->cycle_ns, p->longest_stage_ns);
  EXPECT_THAT(p->violations, IsEmpty());
}

TEST(PlacementTest, ADomainIsBusyForAllThatDrawOnIt) {
  PlanProblem problem = TestProblem(4, {{"cpu", 1000}, {"igpu0", 1000}});
  const NominalRequest decode_only = {0, 1};
  const auto p = EvaluatePlacement(problem, decode_only, {{{0, 2}, 0}, {{2, 4}, 1}});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(p->longest_stage_ns, 2110);
  EXPECT_EQ(p->cycle_ns, 4200);
  problem.devices[1].domain = 7;
  EXPECT_EQ(EvaluatePlacement(problem, decode_only, {{{0, 2}, 0}, {{2, 4}, 1}})->cycle_ns, 2110);
}

TEST(PlacementTest, ATransferIsAStageToo) {
  const PlanProblem problem = TestProblem(2, {{"cpu", 10}, {"dgpu0", 10}}, 5000);
  EXPECT_EQ(EvaluatePlacement(problem, {0, 1}, {{{0, 1}, 0}, {{1, 2}, 1}})->cycle_ns, 5000);
}

TEST(PlacementTest, AddsUpMemory) {
  PlanProblem problem = TestProblem(4, {{"cpu", 1000}, {"igpu0", 100}});
  problem.devices[0].fixed_bytes = 7;
  problem.devices[0].kv_bytes = {0, 1, 1, 1, 1, 0};
  problem.devices[1].fixed_bytes = 5;
  const auto p = EvaluatePlacement(problem, kRequest, {{{0, 1}, 0}, {{1, 3}, 1}, {{3, 4}, 0}});
  ASSERT_TRUE(p.ok()) << p.status();
  // A device with two ranges has its scratch once.
  EXPECT_EQ(p->devices[0].used_bytes, 7 + 2 * kTestLayerBytes + 2 + 2 * kTestEndBytes);
  EXPECT_EQ(p->devices[1].used_bytes, 5 + 2 * kTestLayerBytes);
  EXPECT_EQ(p->pools[0].used_bytes, p->devices[0].used_bytes + p->devices[1].used_bytes);
  EXPECT_EQ(p->segments[2].kv_bytes, 1u);
  problem.devices[0].tied_bytes = kTestEndBytes;
  const auto tied = EvaluatePlacement(problem, kRequest, {{{0, 1}, 0}, {{1, 3}, 1}, {{3, 4}, 0}});
  EXPECT_EQ(tied->devices[0].used_bytes, p->devices[0].used_bytes - kTestEndBytes);
}

TEST(PlacementTest, EndsGoWithTheOutermostLayersUnlessTheyAreGiven) {
  const PlanProblem problem = TestProblem(2, {{"cpu", 1000}, {"dgpu0", 100}});
  const auto with = EvaluatePlacement(problem, kRequest, {{{0, 0}, 0}, {{0, 2}, 1}, {{2, 2}, 0}});
  EXPECT_EQ(Text(problem, *with), "E dgpu0[0,2) H");
  const auto apart = EvaluatePlacement(problem, kRequest, {{{0, 0, true, false}, 0}, {{0, 2}, 1}});
  EXPECT_EQ(Text(problem, *apart), "E cpu[0,0) | dgpu0[0,2) H");
  const auto head = EvaluatePlacement(problem, kRequest, {{{0, 2}, 1}, {{2, 2, false, true}, 0}});
  EXPECT_EQ(Text(problem, *head), "E dgpu0[0,2) | cpu[2,2) H");
}

TEST(PlacementTest, NamesEveryLimitThatIsBroken) {
  PlanProblem problem = TestProblem(4, {{"cpu", 1000}, {"igpu0", 100}});
  problem.pools[0].capacity_bytes = 3 * kTestLayerBytes;
  problem.devices[0].limit_bytes = kTestLayerBytes;
  problem.devices[1].left_out = "lost";
  const auto p = EvaluatePlacement(problem, kRequest, {{{0, 2}, 0}, {{2, 4}, 1}});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(p->violations, ElementsAre("cpu needs 210.0 MiB and has 100.0 MiB",
                                         "pool ram needs 420.0 MiB and has 300.0 MiB",
                                         "igpu0 must not be used: lost"));
}

TEST(PlacementTest, RefusesWhatIsNoPlacement) {
  PlanProblem problem = TestProblem(4, {{"cpu", 1000}, {"dgpu0", 100}});
  EXPECT_THAT(Wrong(problem, {}), HasSubstr("does not cover"));
  EXPECT_THAT(Wrong(problem, {{{0, 3}, 0}}), HasSubstr("out of order"));
  EXPECT_THAT(Wrong(problem, {{{0, 2}, 0}, {{3, 4}, 1}}), HasSubstr("layers 3 to 4 on dgpu0"));
  EXPECT_THAT(Wrong(problem, {{{0, 2}, 0}, {{1, 4}, 1}}), HasSubstr("out of order"));
  EXPECT_THAT(Wrong(problem, {{{0, 5}, 0}}), HasSubstr("out of order"));
  EXPECT_THAT(Wrong(problem, {{{0, 2, true, true}, 0}, {{3, 4, false, true}, 1}}),
              HasSubstr("out of order"));
  EXPECT_THAT(Wrong(problem, {{{0, 4}, 5}}), HasSubstr("not there"));
  problem.devices[1].decode.unit_ns[3] = kCannotRun;
  EXPECT_THAT(Wrong(problem, {{{0, 4}, 1}}), HasSubstr("dgpu0 can't run layer 2"));
}

TEST(PlacementTest, RefusesAProblemWhoseSizesDisagree) {
  const PlanProblem good = TestProblem(4, {{"cpu", 1000}, {"dgpu0", 100}});
  const auto wrong = [&](auto&& change) {
    PlanProblem problem = good;
    change(problem);
    return Wrong(problem, {{{0, 4}, 0}});
  };
  EXPECT_THAT(wrong([](PlanProblem& p) { p.devices[1].pool = 9; }), HasSubstr("a pool"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.devices[1].weight_bytes.pop_back(); }),
              HasSubstr("dgpu0: not one size per unit"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.devices[1].prefill.unit_ns.push_back(1); }),
              HasSubstr("not one time per unit"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.devices[0].decode.unit_ns[1] = -1; }),
              HasSubstr("negative"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.devices[0].decode.unit_ns[1] = kCannotRun - 1; }),
              HasSubstr("beyond reason"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.devices[0].weight_bytes[1] = kNoLimit; }),
              HasSubstr("beyond reason"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.decode_transfer_ns.pop_back(); }),
              HasSubstr("transfer"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.layers = -1; }), HasSubstr("-1 layers"));
  EXPECT_THAT(wrong([](PlanProblem& p) { p.prefill_tokens = 0; }), HasSubstr("count of tokens"));
}

TEST(PlacementTest, WritesBytesAndTimesForPeople) {
  EXPECT_EQ(BytesText(1000), "1000 B");
  EXPECT_EQ(BytesText(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(BytesText(kNoLimit), "no limit");
  EXPECT_EQ(TimeText(1500), "1.5 us");
  EXPECT_EQ(TimeText(12345678), "12.3 ms");
  EXPECT_EQ(TimeText(2500000000), "2.50 s");
}

}  // namespace
}  // namespace trine
