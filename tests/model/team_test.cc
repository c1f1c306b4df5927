// Tests that the same bits come from every team of threads: Trine's own, OpenMP's, and those that a
// program lends.
#include <cfenv>
#include <string>
#include <thread>
#include <vector>

#include "plugins/openmp_team.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

std::vector<int32_t> Prompt() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back(i * i * 7 % 8000);
  return tokens;
}

int32_t ForkAndJoin(HostThreads::Work work, void* arg, uint32_t workers) {
  std::vector<std::thread> threads;
  for (uint32_t w = 1; w < workers; ++w) threads.emplace_back([=] { work(arg, w); });
  work(arg, 0);
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// Threads of a program that rounds upwards.
int32_t ForkAndRoundUpwards(HostThreads::Work work, void* arg, uint32_t workers) {
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  const int32_t status = ForkAndJoin(work, arg, workers);
  std::fesetround(before);
  return status;
}

struct Outcome {
  std::string team;
  uint32_t threads = 0;
  std::string hash;
};

Outcome RunWith(const TeamRequest& team, int64_t threads) {
  EngineOptions options = TestOptions(ShippedModel());
  options.team = team;
  options.threads = threads;
  const auto engine = MustLoad(options);
  if (engine == nullptr) return {};
  return {engine->team_name(), engine->threads(), HashOf(engine.get(), Prompt())};
}

TEST(TeamTest, TheTeamDoesNotShow) {
  const Outcome own = RunWith({TeamKind::kOwn, {}}, 2);
  EXPECT_EQ(own.team, "own");
  ASSERT_FALSE(own.hash.empty());
  for (const auto& run : {ForkAndJoin, ForkAndRoundUpwards}) {
    for (uint32_t threads : {1u, 3u}) {
      TeamRequest lent;
      lent.host = HostThreads{.workers = threads, .parallel_run = run};
      const Outcome host = RunWith(lent, 0);
      EXPECT_EQ(host.team, "host");
      EXPECT_EQ(host.threads, threads);
      EXPECT_EQ(host.hash, own.hash);
    }
  }
  if (!OpenMpTeam::IsBuilt()) GTEST_SKIP() << "built without OpenMP, which is not tried";
  for (int64_t threads : {1, 2, 3}) {
    const Outcome openmp = RunWith({TeamKind::kOpenMp, {}}, threads);
    EXPECT_EQ(openmp.team, "openmp");
    EXPECT_EQ(openmp.threads, threads);
    EXPECT_EQ(openmp.hash, own.hash);
  }
}

}  // namespace
}  // namespace trine
