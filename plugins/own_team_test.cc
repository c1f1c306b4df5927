#include "plugins/own_team.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "plugins/host_services.h"

namespace trine {
namespace {

struct Visits {
  ThreadTeam* team = nullptr;
  std::vector<int> by_worker;
  std::atomic<uint32_t> workers_seen{0};
};

TEST(OwnTeamTest, RunsEachWorkerOnce) {
  for (uint32_t workers : {1u, 2u, 3u, 8u}) {
    OwnTeam team({workers, {}});
    ASSERT_EQ(team.workers(), workers);
    Visits visits;
    visits.by_worker.assign(workers, 0);
    const auto visit = [](void* arg, uint32_t worker, uint32_t n) {
      auto* v = static_cast<Visits*>(arg);
      ++v->by_worker[worker];
      v->workers_seen = n;
    };
    for (int run = 0; run < 200; ++run) ASSERT_TRUE(team.Run(visit, &visits).ok());
    EXPECT_EQ(visits.workers_seen, workers);
    for (int count : visits.by_worker) EXPECT_EQ(count, 200);
  }
}

TEST(OwnTeamTest, BarrierSeparatesPhases) {
  constexpr uint32_t kWorkers = 5;
  OwnTeam team({kWorkers, {}});
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
  ASSERT_TRUE(team.Run(step, &phases).ok());
  EXPECT_EQ(phases.early, 0);
  EXPECT_EQ(phases.arrived, 50 * static_cast<int>(kWorkers));
}

// The team has more threads than processors. Workers that spun would keep the processors from those
// they wait for, and this would take seconds.
TEST(OwnTeamTest, BarriersOfAnOversubscribedTeamDoNotCrawl) {
  constexpr uint32_t kWorkers = 16;
  OwnTeam team({.workers = kWorkers, .cpus = {}, .processors = 1});
  std::atomic<int> done{0};
  const auto step = [](void* arg, uint32_t, uint32_t) {
    for (int i = 0; i < 200; ++i) ThreadTeam::Barrier();
    ++*static_cast<std::atomic<int>*>(arg);
  };
  ASSERT_TRUE(team.Run(step, &done).ok());
  EXPECT_EQ(done, static_cast<int>(kWorkers));
}

#if defined(__linux__)

// Returns the processor time that the calling thread has used.
std::chrono::nanoseconds ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// There are enough processors, but other work has driven the team onto one of them, where a
// spinning worker keeps the others from running. Spinning would take 50 us at each barrier.
TEST(OwnTeamTest, WorkersOnOneProcessorDoNotSpin) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  constexpr int kBarriers = 2000;
  struct Times {
    int cpu = sched_getcpu();
    std::chrono::nanoseconds of[2];
  } times;
  OwnTeam team({2, {}, 2});
  const auto work = [](void* arg, uint32_t worker, uint32_t) {
    auto* t = static_cast<Times*>(arg);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(t->cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
    const std::chrono::nanoseconds begin = ThreadTime();
    for (int i = 0; i < kBarriers; ++i) ThreadTeam::Barrier();
    t->of[worker] = ThreadTime() - begin;
  };
  const bool ran = team.Run(work, &times).ok();
  sched_setaffinity(0, sizeof(before), &before);
  ASSERT_TRUE(ran);
  EXPECT_LT(times.of[0] + times.of[1], kBarriers * std::chrono::microseconds(25));
}

#endif

// The team is idle for longer than workers spin: they sleep and must be woken.
TEST(OwnTeamTest, WakesWorkersThatSleep) {
  OwnTeam team({3, {}});
  std::atomic<int> ran{0};
  const auto count = [](void* arg, uint32_t worker, uint32_t) {
    if (worker == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ThreadTeam::Barrier();
    ++*static_cast<std::atomic<int>*>(arg);
  };
  for (int run = 1; run <= 5; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(team.Run(count, &ran).ok());
    EXPECT_EQ(ran, 3 * run);
  }
}

TEST(OwnTeamTest, RefusesToNest) {
  OwnTeam team({2, {}});
  struct Nested {
    ThreadTeam* team;
    std::atomic<int> refused{0};
    std::atomic<int> inner{0};
  } nested{&team};
  const auto outer = [](void* arg, uint32_t, uint32_t) {
    auto* n = static_cast<Nested*>(arg);
    const auto inner = [](void* a, uint32_t, uint32_t) { ++static_cast<Nested*>(a)->inner; };
    if (n->team->Run(inner, n).code() == absl::StatusCode::kFailedPrecondition) ++n->refused;
  };
  ASSERT_TRUE(team.Run(outer, &nested).ok());
  EXPECT_EQ(nested.refused, 2);
  EXPECT_EQ(nested.inner, 0);
  EXPECT_TRUE(team.Run([](void*, uint32_t, uint32_t) {}, nullptr).ok()) << "usable afterwards";
}

TEST(OwnTeamTest, CallersTakeTurns) {
  OwnTeam team({3, {}});
  struct Shared {
    std::atomic<int> inside{0};
    std::atomic<int> overlap{0};
    std::atomic<int> total{0};
  } shared;
  const auto body = [](void* arg, uint32_t worker, uint32_t) {
    auto* s = static_cast<Shared*>(arg);
    if (worker == 0 && s->inside.fetch_add(1) != 0) ++s->overlap;
    ++s->total;
    if (worker == 0) --s->inside;
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int run = 0; run < 100; ++run) EXPECT_TRUE(team.Run(body, &shared).ok());
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(shared.overlap, 0);
  EXPECT_EQ(shared.total, 4 * 100 * 3);
}

TEST(OwnTeamTest, BindsWorkers) {
  OwnTeam team({2, {0}});
  struct Where {
    std::atomic<int> cpu{-1};
  } where;
  const auto look = [](void* arg, uint32_t worker, uint32_t) {
    if (worker == 1) static_cast<Where*>(arg)->cpu = sched_getcpu();
  };
  ASSERT_TRUE(team.Run(look, &where).ok());
  EXPECT_EQ(where.cpu, 0);
}

// A throwing worker is the plugin's fault. Neither the other workers at a barrier nor the next run
// may suffer from it.
TEST(OwnTeamTest, ThrowingWorkersLeaveTheTeamUsable) {
  for (uint32_t workers : {1u, 3u}) {
    for (uint32_t culprit = 0; culprit < workers; ++culprit) {
      OwnTeam team({workers, {}});
      const auto toss = [](void* arg, uint32_t worker, uint32_t) {
        if (worker == *static_cast<uint32_t*>(arg)) {
          std::this_thread::sleep_for(std::chrono::milliseconds(3));  // the others sleep by then
          throw 42;
        }
        ThreadTeam::Barrier();
      };
      EXPECT_EQ(team.Run(toss, &culprit).code(), absl::StatusCode::kInternal);
      std::atomic<int> ran{0};
      const auto count = [](void* arg, uint32_t, uint32_t) {
        ThreadTeam::Barrier();
        ++*static_cast<std::atomic<int>*>(arg);
        ThreadTeam::Barrier();
      };
      EXPECT_TRUE(team.Run(count, &ran).ok());
      EXPECT_EQ(ran, static_cast<int>(workers));
    }
  }
}

// A worker that never returns must not stop the process or a new team.
TEST(OwnTeamTest, HungTeamCanBeAbandoned) {
  static std::atomic<bool> release{false};
  static std::atomic<bool> hung{false};
  auto team = std::make_unique<OwnTeam>(ThreadTeamOptions{2, {}});
  const auto hang = [](void*, uint32_t worker, uint32_t) {
    if (worker == 0) return;
    hung = true;
    while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  std::thread stuck([&team, hang] { (void)team->Run(hang, nullptr); });
  while (!hung) std::this_thread::yield();
  std::thread next([&team] {
    EXPECT_EQ(team->Run([](void*, uint32_t, uint32_t) {}, nullptr).code(),
              absl::StatusCode::kAborted);
  });
  team->Abandon();
  next.join();
  OwnTeam fresh({2, {}});
  EXPECT_TRUE(fresh.Run([](void*, uint32_t, uint32_t) {}, nullptr).ok());
  release = true;
  stuck.join();
}

TEST(HostServicesTest, AddsUpOpTimesBetweenStartAndStop) {
  HostServices host({1, {}}, nullptr);
  const trine_host& table = *host.table();
  EXPECT_EQ(*table.profiling, 0u);
  host.StartOpTimes();
  EXPECT_NE(*table.profiling, 0u);
  table.op_done(table.self, "attention", 5);
  table.op_done(table.self, std::string("matmul q4_0").c_str(), 4);  // the name is copied
  table.op_done(table.self, "matmul q4_0", 3);
  const std::vector<OpTime> times = host.StopOpTimes();
  EXPECT_EQ(*table.profiling, 0u);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].name, "matmul q4_0");
  EXPECT_EQ(times[0].calls, 2u);
  EXPECT_EQ(times[0].ns, 7u);
  EXPECT_EQ(times[1].name, "attention");
  host.StartOpTimes();
  EXPECT_TRUE(host.StopOpTimes().empty()) << "begins anew";
}

// One device's plan hangs and the host gives up on it. Another device's plan, which was waiting for
// the team, runs on the new one.
TEST(HostServicesTest, ReplacesAHungTeam) {
  static std::atomic<bool> release{false};
  static std::atomic<bool> hung{false};
  HostServices host({2, {}}, nullptr);
  const trine_host& table = *host.table();
  std::thread stuck([&table] {
    table.parallel_run(
        table.self,
        [](void*, uint32_t worker, uint32_t) {
          if (worker == 0) return;
          hung = true;
          while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        nullptr);
  });
  while (!hung) std::this_thread::yield();
  std::atomic<int> ran{0};
  std::thread waiting([&] {
    EXPECT_EQ(
        table.parallel_run(
            table.self,
            [](void* arg, uint32_t, uint32_t) { ++*static_cast<std::atomic<int>*>(arg); }, &ran),
        TRINE_OK);
  });
  host.ReplaceTeam();
  waiting.join();
  EXPECT_EQ(ran, 2);
  release = true;
  stuck.join();
}

}  // namespace
}  // namespace trine
