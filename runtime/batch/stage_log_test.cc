#include "runtime/batch/stage_log.h"

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace trine {
namespace {

using std::chrono::microseconds;
using Json = nlohmann::json;
using ::testing::ElementsAre;

std::vector<SegmentPlace> Places() { return {{nullptr, "cpu", 0, 1}, {nullptr, "dgpu0", 1, 32}}; }

StageRun Made(StageRun::Clock::time_point begin, bool ok) {
  StageRun run;
  run.begin = begin;
  run.written = begin + microseconds(1);
  if (ok) run.ran = begin + microseconds(8);
  run.end = begin + microseconds(10);
  run.bytes_in = 100;
  run.bytes_out = ok ? 40 : 0;
  run.ok = ok;
  return run;
}

TEST(StageLogTest, CountsWithoutATrace) {
  StageLog log(Places(), {{1, "dgpu1", RouteKind::kStreamed, 64}}, {{"cpu"}, {"dgpu0", "dgpu1"}}, 3,
               nullptr);
  const auto now = StageRun::Clock::now();
  log.Ran(0, {.number = 1, .tokens = 7, .sequences = 2}, Made(now, true));
  log.Ran(0, {.number = 2, .tokens = 1, .sequences = 1}, Made(now, true));
  StageRun with_help = Made(now, false);
  with_help.detour = true;
  with_help.devices.Add("dgpu0", 700);
  with_help.devices.Add("dgpu1", 200);
  log.Ran(1, {.number = 1, .tokens = 7, .sequences = 2}, with_help);
  log.Hung(1, microseconds(5));
  StageCounters stages;
  stages.busy_ns = 30;
  stages.waiting_ns = 60;
  stages.blocked_ns = 10;
  const auto counters = log.Counters({stages, {}});
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].device_name, "cpu");
  EXPECT_EQ(counters[0].placement, 3u);
  EXPECT_EQ(counters[0].tokens, 8u);
  EXPECT_EQ(counters[0].bytes_in, 200u);
  EXPECT_EQ(counters[0].bytes_out, 80u);
  EXPECT_DOUBLE_EQ(counters[0].busy_ratio(), 0.3);
  EXPECT_EQ(counters[1].end, 32);
  EXPECT_EQ(counters[1].bytes_out, 0u);
  EXPECT_EQ(counters[1].busy_ratio(), 0);
  EXPECT_EQ(counters[0].helper, "");
  EXPECT_EQ(counters[0].detours, 0u);
  EXPECT_EQ(counters[1].helper, "dgpu1");
  EXPECT_EQ(counters[1].detours, 1u);
  EXPECT_TRUE(counters[0].devices.empty()) << "one device runs it";
  ASSERT_EQ(counters[1].devices.size(), 2u);
  EXPECT_EQ(counters[1].devices[1].device_name, "dgpu1");
  EXPECT_EQ(counters[1].devices[1].passes, 1u);
  EXPECT_EQ(counters[1].devices[1].busy_ns, 200u);
}

TEST(StageLogTest, TracesThePartsOfAPass) {
  auto trace = std::make_shared<Trace>();
  StageLog log(Places(), {}, {{"cpu"}, {"dgpu0"}}, 1, trace);
  const auto now = StageRun::Clock::now();
  log.Ran(0, {.number = 5, .tokens = 7, .sequences = 2, .replayed = 4}, Made(now, true));
  log.Ran(1, {.number = 5, .tokens = 7, .sequences = 2}, Made(now + microseconds(20), false));
  const StageLog again(Places(), {}, {{"cpu"}, {"dgpu0"}}, 2, trace);
  std::vector<std::string> names, tracks;
  const Json file = Json::parse(trace->Json());
  for (const Json& event : file["traceEvents"]) {
    if (event["ph"] == "X") names.push_back(event["name"]);
    if (event["name"] == "thread_name") tracks.push_back(event["args"]["name"]);
    if (event["name"] == "pass") {
      EXPECT_EQ(event["args"], Json({{"pass", 5},
                                     {"tokens", 7},
                                     {"sequences", 2},
                                     {"replayed", 4},
                                     {"detour", 0},
                                     {"placement", 1}}));
    }
    if (event["name"] == "hand on") {
      EXPECT_EQ(event["args"], Json({{"bytes", 40}, {"pass", 5}}));
      EXPECT_NEAR(event["dur"].get<double>(), 2, 0.01);
    }
  }
  EXPECT_THAT(names, ElementsAre("pass", "write inputs", "run", "hand on", "failed pass",
                                 "write inputs", "run"));
  EXPECT_THAT(tracks, ElementsAre("cpu layer 0", "dgpu0 layers 1-31", "cpu layer 0, placement 2",
                                  "dgpu0 layers 1-31, placement 2"));
}

}  // namespace
}  // namespace trine
