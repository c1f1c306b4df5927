// Every kind of team keeps the promises of ThreadTeam, and what a program does wrong with its own
// threads becomes a status.
#include <atomic>
#include <cfenv>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/callback_team.h"
#include "plugins/openmp_team.h"
#include "plugins/own_team.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

// A program's fork and join: a new thread for each worker but the first.
int32_t ForkAndJoin(HostThreads::Work work, void* arg, uint32_t workers) {
  std::vector<std::thread> threads;
  for (uint32_t w = 1; w < workers; ++w) threads.emplace_back([=] { work(arg, w); });
  work(arg, 0);
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// Returns whether this thread's sums round to nearest. (fegetround asks the x87 unit on x86-64.)
bool RoundsToNearest() {
  volatile float one = 1, tiny = 0x1p-30f;
  return one + tiny == 1;
}

HostThreads Lend(uint32_t workers, decltype(HostThreads::parallel_run) parallel_run) {
  HostThreads threads;
  threads.workers = workers;
  threads.parallel_run = std::move(parallel_run);
  return threads;
}

class TeamsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (Name() == "openmp" && !OpenMpTeam::IsBuilt()) GTEST_SKIP() << "built without OpenMP";
  }
  static std::string Name() { return GetParam(); }
  static std::shared_ptr<ThreadTeam> Make(uint32_t workers) {
    if (Name() == "own") return std::make_shared<OwnTeam>(ThreadTeamOptions{workers, {}});
    auto team = Name() == "openmp" ? OpenMpTeam::Create(workers)
                                   : CallbackTeam::Create(Lend(workers, ForkAndJoin), 0);
    EXPECT_TRUE(team.ok()) << team.status();
    return team.ok() ? *std::move(team) : nullptr;
  }
};

TEST_P(TeamsTest, RunsEachWorkerOnceAndTheCallerIsTheFirst) {
  struct Visits {
    std::vector<int> by_worker;
    std::thread::id first;
    std::atomic<uint32_t> workers_seen{0};
  };
  for (uint32_t workers : {1u, 2u, 5u}) {
    const auto team = Make(workers);
    ASSERT_NE(team, nullptr);
    EXPECT_EQ(team->name(), Name());
    ASSERT_EQ(team->workers(), workers);
    Visits visits;
    visits.by_worker.assign(workers, 0);
    const auto visit = [](void* arg, uint32_t worker, uint32_t n) {
      auto* v = static_cast<Visits*>(arg);
      ++v->by_worker[worker];
      v->workers_seen = n;
      if (worker == 0) v->first = std::this_thread::get_id();
    };
    for (int run = 0; run < 50; ++run) ASSERT_TRUE(team->Run(visit, &visits).ok());
    EXPECT_EQ(visits.workers_seen, workers);
    EXPECT_EQ(visits.first, std::this_thread::get_id());
    for (int count : visits.by_worker) EXPECT_EQ(count, 50);
  }
}

TEST_P(TeamsTest, BarrierSeparatesPhases) {
  constexpr uint32_t kWorkers = 4;
  const auto team = Make(kWorkers);
  ASSERT_NE(team, nullptr);
  struct Phases {
    std::atomic<int> arrived{0};
    std::atomic<int> early{0};
  } phases;
  const auto step = [](void* arg, uint32_t, uint32_t n) {
    auto* p = static_cast<Phases*>(arg);
    for (int phase = 1; phase <= 50; ++phase) {
      ++p->arrived;
      ThreadTeam::Barrier();
      if (p->arrived < phase * static_cast<int>(n)) ++p->early;
      ThreadTeam::Barrier();
    }
  };
  ASSERT_TRUE(team->Run(step, &phases).ok());
  EXPECT_EQ(phases.early, 0);
  EXPECT_EQ(phases.arrived, 50 * static_cast<int>(kWorkers));
}

TEST_P(TeamsTest, RefusesToRunInsideARun) {
  const auto team = Make(2);
  ASSERT_NE(team, nullptr);
  struct Nested {
    ThreadTeam* team;
    std::atomic<int> refused{0};
    std::atomic<int> ran{0};
  } nested{team.get(), {}, {}};
  const auto body = [](void* arg, uint32_t, uint32_t) {
    auto* n = static_cast<Nested*>(arg);
    const auto inner = [](void* counter, uint32_t, uint32_t) {
      ++*static_cast<std::atomic<int>*>(counter);
    };
    if (absl::IsFailedPrecondition(n->team->Run(inner, &n->ran))) ++n->refused;
  };
  ASSERT_TRUE(team->Run(body, &nested).ok());
  EXPECT_EQ(nested.refused, 2);
  EXPECT_EQ(nested.ran, 0);
}

TEST_P(TeamsTest, ThrowingWorkersLeaveTheTeamUsable) {
  for (uint32_t culprit = 0; culprit < 3; ++culprit) {
    const auto team = Make(3);
    ASSERT_NE(team, nullptr);
    const auto toss = [](void* arg, uint32_t worker, uint32_t) {
      if (worker == *static_cast<uint32_t*>(arg)) throw 42;
      ThreadTeam::Barrier();
    };
    EXPECT_EQ(team->Run(toss, &culprit).code(), absl::StatusCode::kInternal);
    std::atomic<int> ran{0};
    const auto count = [](void* arg, uint32_t, uint32_t) {
      ThreadTeam::Barrier();
      ++*static_cast<std::atomic<int>*>(arg);
    };
    EXPECT_TRUE(team->Run(count, &ran).ok());
    EXPECT_EQ(ran, 3);
  }
}

TEST_P(TeamsTest, CallsFromSeveralThreadsTakeTurns) {
  const auto team = Make(2);
  ASSERT_NE(team, nullptr);
  struct Shared {
    std::atomic<int> inside{0};
    std::atomic<int> overlap{0};
    std::atomic<int> total{0};
  } shared;
  const auto body = [](void* arg, uint32_t, uint32_t n) {
    auto* s = static_cast<Shared*>(arg);
    if (++s->inside > static_cast<int>(n)) ++s->overlap;
    ++s->total;
    ThreadTeam::Barrier();
    --s->inside;
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      for (int run = 0; run < 30; ++run) EXPECT_TRUE(team->Run(body, &shared).ok());
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(shared.overlap, 0);
  EXPECT_EQ(shared.total, 3 * 30 * 2);
}

TEST_P(TeamsTest, AnotherTakesThePlaceOfAnAbandonedOne) {
  const auto team = Make(2);
  ASSERT_NE(team, nullptr);
  const auto another = team->MakeAnother();
  team->Abandon();
  const auto nothing = [](void*, uint32_t, uint32_t) {};
  EXPECT_TRUE(absl::IsAborted(team->Run(nothing, nullptr)));
  EXPECT_EQ(another->name(), Name());
  EXPECT_EQ(another->workers(), 2u);
  EXPECT_EQ(another->processors(), team->processors());
  EXPECT_TRUE(another->Run(nothing, nullptr).ok());
}

// A program may compute with another rounding than the contract's. Its threads get their own back.
TEST_P(TeamsTest, WorkersRoundToNearestAndTheCallerGetsItsRoundingBack) {
  const auto team = Make(2);
  ASSERT_NE(team, nullptr);
  std::atomic<int> other{0};
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const absl::Status status = team->Run(
      [](void* arg, uint32_t, uint32_t) {
        if (!RoundsToNearest()) ++*static_cast<std::atomic<int>*>(arg);
      },
      &other);
  const bool was_kept = !RoundsToNearest();
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(other, 0);
  EXPECT_TRUE(was_kept);
}

INSTANTIATE_TEST_SUITE_P(Kinds, TeamsTest, testing::Values("own", "openmp", "host"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(NoOpenMpTest, IsRefusedWithTheReason) {
  if (OpenMpTeam::IsBuilt()) GTEST_SKIP() << "built with OpenMP";
  const auto team = OpenMpTeam::Create(2);
  EXPECT_TRUE(absl::IsUnimplemented(team.status()));
  EXPECT_THAT(team.status().message(), HasSubstr("this build has no OpenMP"));
}

// What a program's parallel_run can do wrong.
class CallbackTeamTest : public testing::Test {
 protected:
  static constexpr uint32_t kWorkers = 3;
  // Makes a team whose callback is right until `parallel_run_` is set.
  void SetUp() override { MakeTeam(std::chrono::seconds(10)); }

  // `limit`: how long all workers may take to begin.
  void MakeTeam(std::chrono::milliseconds limit) {
    HostThreads threads = Lend(kWorkers, [this](auto work, void* arg, uint32_t workers) {
      return parallel_run_ ? parallel_run_(work, arg, workers) : ForkAndJoin(work, arg, workers);
    });
    threads.begin_limit = limit;
    auto team = CallbackTeam::Create(threads, 0);
    ASSERT_TRUE(team.ok()) << team.status();
    team_ = *std::move(team);
  }

  // Expects that a run with the wrong callback computes nothing and says why, and that the team
  // works again with the right one.
  void ExpectRefused(const std::string& why) {
    ran_ = 0;
    const absl::Status status = Count();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("the program's parallel_run " + why));
    EXPECT_EQ(ran_, 0);
    ExpectWorks();
  }
  void ExpectWorks() {
    parallel_run_ = nullptr;
    ran_ = 0;
    EXPECT_TRUE(Count().ok());
    EXPECT_EQ(ran_, static_cast<int>(kWorkers));
  }
  absl::Status Count() {
    return team_->Run(
        [](void* arg, uint32_t, uint32_t) {
          ThreadTeam::Barrier();
          ++*static_cast<std::atomic<int>*>(arg);
        },
        &ran_);
  }

  decltype(HostThreads::parallel_run) parallel_run_;
  std::shared_ptr<ThreadTeam> team_;
  std::atomic<int> ran_{0};
};

TEST_F(CallbackTeamTest, OneAfterTheOther) {
  MakeTeam(std::chrono::milliseconds(500));
  parallel_run_ = [](auto work, void* arg, uint32_t workers) {
    for (uint32_t w = 0; w < workers; ++w) work(arg, w);
    return 0;
  };
  ExpectRefused("let 1 of 3 workers begin: each needs a thread of its own");
}

TEST_F(CallbackTeamTest, TooFew) {
  MakeTeam(std::chrono::milliseconds(500));
  parallel_run_ = [](auto work, void* arg, uint32_t workers) {
    return ForkAndJoin(work, arg, workers - 1);
  };
  ExpectRefused("let 2 of 3 workers begin");
}

TEST_F(CallbackTeamTest, None) {
  parallel_run_ = [](auto, void*, uint32_t) { return 0; };
  ExpectRefused("returned after 0 of 3 workers had begun");
}

TEST_F(CallbackTeamTest, NoThreadsAtPresent) {
  parallel_run_ = [](auto, void*, uint32_t) { return 5; };
  ExpectRefused("returned 5: it has no threads to lend at present");
}

TEST_F(CallbackTeamTest, OneWorkerTwice) {
  parallel_run_ = [](auto work, void* arg, uint32_t) {
    std::thread other([=] { work(arg, 1); });
    std::thread again([=] { work(arg, 1); });
    work(arg, 0);
    other.join();
    again.join();
    return 0;
  };
  ExpectRefused("called one worker twice");
}

TEST_F(CallbackTeamTest, AWorkerThatThereIsNot) {
  parallel_run_ = [](auto work, void* arg, uint32_t workers) {
    work(arg, workers);
    return 0;
  };
  ExpectRefused("called a worker that is not below 3");
}

TEST_F(CallbackTeamTest, TheFirstOnAnotherThread) {
  parallel_run_ = [](auto work, void* arg, uint32_t workers) {
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < workers; ++w) threads.emplace_back([=] { work(arg, w); });
    for (std::thread& thread : threads) thread.join();
    return 0;
  };
  ExpectRefused("called worker 0 on another thread than its own");
}

TEST_F(CallbackTeamTest, AnException) {
  parallel_run_ = [](auto, void*, uint32_t) -> int32_t { throw 42; };
  ExpectRefused("threw an exception");
}

// These have computed what they should. The mistake is told all the same, so that it is found.
TEST_F(CallbackTeamTest, CallsTooManyAndWrongResults) {
  parallel_run_ = [](auto work, void* arg, uint32_t workers) {
    ForkAndJoin(work, arg, workers);
    return 1;
  };
  EXPECT_THAT(Count().message(), HasSubstr("returned 1, which is not 0, and ran workers"));
  ExpectWorks();
  parallel_run_ = [](auto work, void* arg, uint32_t workers) {
    ForkAndJoin(work, arg, workers);
    work(arg, 0);
    return 0;
  };
  EXPECT_THAT(Count().message(), HasSubstr("called one worker twice"));
  ExpectWorks();
}

TEST_F(CallbackTeamTest, CallsThatComeLateDoNothing) {
  HostThreads::Work late = nullptr;
  void* late_arg = nullptr;
  parallel_run_ = [&](auto work, void* arg, uint32_t) {
    late = work;
    late_arg = arg;
    return 0;
  };
  ExpectRefused("returned after 0 of 3 workers had begun");
  ran_ = 0;
  for (uint32_t w = 0; w < kWorkers + 1; ++w) late(late_arg, w);
  EXPECT_EQ(ran_, 0);
  ExpectWorks();
}

// A program that can't lend its threads at once may still call for them when the team is gone.
TEST_F(CallbackTeamTest, CallsAfterTheTeamIsGoneDoNothing) {
  std::vector<std::function<void()>> late;
  HostThreads threads = Lend(kWorkers, [&](auto work, void* arg, uint32_t workers) {
    for (uint32_t w = 0; w < workers; ++w) late.push_back([=] { work(arg, w); });
    return 0;
  });
  const auto team = CallbackTeam::Create(threads, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(team.status())) << team.status();
  ASSERT_EQ(late.size(), kWorkers);
  for (const auto& call : late) call();
}

TEST_F(CallbackTeamTest, ReturnsBeforeItsWorkersDo) {
  std::vector<std::thread> threads;
  parallel_run_ = [&](auto work, void* arg, uint32_t workers) {
    for (uint32_t w = 1; w < workers; ++w) threads.emplace_back([=] { work(arg, w); });
    work(arg, 0);  // returns when all have begun
    return 0;
  };
  ran_ = 0;
  EXPECT_TRUE(Count().ok());
  EXPECT_EQ(ran_, static_cast<int>(kWorkers)) << "the run waits for them";
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  ExpectWorks();
}

TEST_F(CallbackTeamTest, BadArguments) {
  EXPECT_TRUE(absl::IsInvalidArgument(CallbackTeam::Create({}, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CallbackTeam::Create(Lend(2, nullptr), 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CallbackTeam::Create(Lend(0, ForkAndJoin), 0).status()));
  const auto never = [](auto, void*, uint32_t) { return 0; };
  const absl::Status tried = CallbackTeam::Create(Lend(2, never), 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(tried)) << tried;
}

}  // namespace
}  // namespace trine
