// Tests the SDK's calls of the host's team: they pass everything on.
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "trine/backend_sdk.h"

namespace {

// A host whose team is the calling thread, as one worker after the other.
struct FakeTeam {
  int barriers = 0;
  trine_status answer = TRINE_OK;
  trine_host table{};

  FakeTeam() {
    table.struct_size = sizeof(table);
    table.worker_count = 3;
    table.self = this;
    table.barrier = [](void* self) { ++static_cast<FakeTeam*>(self)->barriers; };
    table.parallel_run = [](void* self, trine_worker_fn fn, void* arg) {
      const FakeTeam& team = *static_cast<FakeTeam*>(self);
      if (team.answer != TRINE_OK) return team.answer;
      for (uint32_t w = 0; w < team.table.worker_count; ++w) fn(arg, w, team.table.worker_count);
      return trine_status{TRINE_OK};
    };
  }
  FakeTeam(const FakeTeam&) = delete;
  FakeTeam& operator=(const FakeTeam&) = delete;
};

void Note(void* arg, uint32_t worker, uint32_t workers) {
  static_cast<std::vector<uint32_t>*>(arg)->push_back(worker * 10 + workers);
}

TEST(SdkTeamTest, EveryWorkerGetsTheArguments) {
  FakeTeam team;
  std::vector<uint32_t> calls;
  EXPECT_EQ(trine::sdk::RunOnTeam(team.table, Note, &calls), TRINE_OK);
  EXPECT_EQ(calls, (std::vector<uint32_t>{3, 13, 23}));
}

TEST(SdkTeamTest, AStatusIsPassedOn) {
  FakeTeam team;
  team.answer = TRINE_ABORTED;
  std::vector<uint32_t> calls;
  EXPECT_EQ(trine::sdk::RunOnTeam(team.table, Note, &calls), TRINE_ABORTED);
  EXPECT_TRUE(calls.empty());
}

TEST(SdkTeamTest, WaitingIsTheHostsBarrier) {
  FakeTeam team;
  trine::sdk::WaitForTeam(team.table);
  trine::sdk::WaitForTeam(team.table);
  EXPECT_EQ(team.barriers, 2);
}

}  // namespace
