// The team of OpenMP's threads beside the program's own use of OpenMP.
#include "plugins/openmp_team.h"

#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

void Count(void* arg, uint32_t, uint32_t) {
  ThreadTeam::Barrier();
  ++*static_cast<std::atomic<int>*>(arg);
}

// Returns whether this thread's sums round to nearest. (fegetround asks the x87 unit on x86-64.)
bool SumsRoundToNearest() {
  volatile float one = 1, tiny = 0x1p-30f;
  return one + tiny == 1;
}

class OpenMpTeamTest : public testing::Test {
 protected:
  void TearDown() override {
    omp_set_num_threads(threads_);
    omp_set_max_active_levels(levels_);
    omp_set_dynamic(0);
  }
  static std::shared_ptr<ThreadTeam> Make(uint32_t threads) {
    auto team = OpenMpTeam::Create(threads);
    EXPECT_TRUE(team.ok()) << team.status();
    return team.ok() ? *std::move(team) : nullptr;
  }

 private:
  const int threads_ = omp_get_max_threads();
  const int levels_ = omp_get_max_active_levels();
};

TEST_F(OpenMpTeamTest, HasAsManyWorkersAsOpenMpHasThreads) {
  omp_set_num_threads(3);
  EXPECT_EQ(Make(0)->workers(), 3u);
  EXPECT_EQ(Make(2)->workers(), 2u) << "unless a number is asked for";
  EXPECT_EQ(omp_get_max_threads(), 3) << "the program's own setting stays";
}

TEST_F(OpenMpTeamTest, ComputesOnTheThreadsOfTheProgramsPool) {
  std::mutex mutex;
  std::set<std::thread::id> pool;
#pragma omp parallel num_threads(3)
  {
    const std::lock_guard lock(mutex);
    pool.insert(std::this_thread::get_id());
  }
  struct Seen {
    std::mutex mutex;
    std::set<std::thread::id> threads;
  } seen;
  const auto note = [](void* arg, uint32_t, uint32_t) {
    auto* s = static_cast<Seen*>(arg);
    const std::lock_guard lock(s->mutex);
    s->threads.insert(std::this_thread::get_id());
  };
  ASSERT_TRUE(Make(3)->Run(note, &seen).ok());
  EXPECT_EQ(seen.threads, pool);
}

TEST_F(OpenMpTeamTest, IsRefusedInsideAParallelRegionAndWorksAfterIt) {
  omp_set_max_active_levels(1);
  const auto team = Make(2);
  ASSERT_NE(team, nullptr);
  std::atomic<int> ran{0};
  absl::Status inside, made;
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    {
      inside = team->Run(Count, &ran);
      made = OpenMpTeam::Create(2).status();
    }
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(inside)) << inside;
  EXPECT_THAT(inside.message(), HasSubstr("OpenMP gives 1 of 2 threads"));
  EXPECT_THAT(inside.message(), HasSubstr("inside of a parallel region"));
  EXPECT_TRUE(absl::IsFailedPrecondition(made)) << made;
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(team->Run(Count, &ran).ok());
  EXPECT_EQ(ran, 2);
}

TEST_F(OpenMpTeamTest, RunsInsideAParallelRegionWhereNestingIsAllowed) {
  omp_set_max_active_levels(2);
  const auto team = Make(2);
  ASSERT_NE(team, nullptr);
  std::atomic<int> ran{0};
  absl::Status inside;
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    inside = team->Run(Count, &ran);
  }
  EXPECT_TRUE(inside.ok()) << inside;
  EXPECT_EQ(ran, 2);
}

TEST_F(OpenMpTeamTest, KeepsItsSizeWhereOpenMpMayChooseIt) {
  const auto team = Make(4);
  ASSERT_NE(team, nullptr);
  omp_set_dynamic(1);
  std::atomic<int> ran{0};
  EXPECT_TRUE(team->Run(Count, &ran).ok());
  EXPECT_EQ(ran, 4);
  EXPECT_NE(omp_get_dynamic(), 0) << "the program's own setting stays";
}

// GCC's runtime would wait for ever in the thread that has a pool. Another thread gets its own.
TEST_F(OpenMpTeamTest, AChildProcessMakesATeamInAnotherThread) {
  const auto team = Make(2);
  std::atomic<int> ran{0};
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    const auto refused = OpenMpTeam::Create(2);
    const bool is_told =
        absl::IsFailedPrecondition(refused.status()) && !team->Run(Count, &ran).ok() && ran == 0;
    bool is_good = false;
    std::thread([&] {
      const auto own = OpenMpTeam::Create(2);
      is_good = own.ok() && (*own)->Run(Count, &ran).ok() && ran == 2;
    }).join();
    _exit(!is_told ? 1 : is_good ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(team->Run(Count, &ran).ok()) << "the parent's team works as before";
}

TEST_F(OpenMpTeamTest, ThreadsGetTheirRoundingBack) {
  const auto team = Make(3);
  ASSERT_NE(team, nullptr);
#pragma omp parallel num_threads(3)
  std::fesetround(FE_UPWARD);
  std::atomic<int> other{0};
  EXPECT_TRUE(team->Run(
                      [](void* arg, uint32_t, uint32_t) {
                        if (!SumsRoundToNearest()) ++*static_cast<std::atomic<int>*>(arg);
                      },
                      &other)
                  .ok());
  EXPECT_EQ(other, 0);
  std::atomic<int> kept{0};
#pragma omp parallel num_threads(3)
  {
    if (!SumsRoundToNearest()) ++kept;
    std::fesetround(FE_TONEAREST);
  }
  EXPECT_EQ(kept, 3);
}

}  // namespace
}  // namespace trine
