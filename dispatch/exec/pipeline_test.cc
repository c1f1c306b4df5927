#include "dispatch/exec/pipeline.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

// Records what happened to jobs, in order.
class Log {
 public:
  void Ran(int job, size_t stage) {
    std::lock_guard lock(mutex_);
    ran_[stage].push_back(job);
  }
  void Done(int job, const absl::Status& status, size_t stage) {
    std::lock_guard lock(mutex_);
    done_.push_back(job);
    statuses_.insert({job, {status, stage}});
    ++ends_[job];
    changed_.notify_all();
  }
  void AwaitDone(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.size() >= count; });
  }
  std::vector<int> ran(size_t stage) {
    std::lock_guard lock(mutex_);
    return ran_[stage];
  }
  std::vector<int> done() {
    std::lock_guard lock(mutex_);
    return done_;
  }
  absl::Status status(int job) {
    std::lock_guard lock(mutex_);
    return statuses_.at(job).first;
  }
  size_t stage(int job) {
    std::lock_guard lock(mutex_);
    return statuses_.at(job).second;
  }
  int ends(int job) {
    std::lock_guard lock(mutex_);
    return ends_[job];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, std::vector<int>> ran_;
  std::vector<int> done_;
  std::map<int, std::pair<absl::Status, size_t>> statuses_;
  std::map<int, int> ends_;
};

class TestJob : public PipelineJob {
 public:
  using Body = std::function<absl::Status(size_t stage)>;
  TestJob(int id, Log* log, Body body = nullptr) : id_(id), log_(log), body_(std::move(body)) {}
  absl::Status RunStage(size_t stage) override {
    log_->Ran(id_, stage);
    return body_ ? body_(stage) : absl::OkStatus();
  }
  void Done(const absl::Status& status, size_t stage) override { log_->Done(id_, status, stage); }

 private:
  const int id_;
  Log* const log_;
  const Body body_;
};

std::unique_ptr<Pipeline> Make(std::vector<std::string> stages, size_t waiting = 1,
                               bool on_caller = false) {
  auto pipeline = Pipeline::Create({std::move(stages), waiting, on_caller});
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

TEST(PipelineTest, EveryJobPassesEveryStageInOrder) {
  Log log;
  std::vector<int> all;
  {
    auto pipeline = Make({"a", "b", "c"});
    for (int i = 0; i < 200; ++i) {
      all.push_back(i);
      // Uneven speeds, so that queues run full and empty.
      pipeline->Submit(std::make_shared<TestJob>(i, &log, [i](size_t stage) {
        if ((i / 20 + static_cast<int>(stage)) % 3 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return absl::OkStatus();
      }));
    }
  }
  for (size_t stage = 0; stage < 3; ++stage) EXPECT_EQ(log.ran(stage), all);
  EXPECT_EQ(log.done(), all);
  for (int i : all) EXPECT_TRUE(log.status(i).ok());
}

// Each job waits in its stage for one in the other stage: unless both run at once, neither ends.
TEST(PipelineTest, StagesWorkAtTheSameTime) {
  Log log;
  std::promise<void> second_began, first_began_again;
  auto pipeline = Make({"a", "b"});
  pipeline->Submit(std::make_shared<TestJob>(0, &log, [&](size_t stage) {
    if (stage == 1) {
      second_began.set_value();
      first_began_again.get_future().wait();
    }
    return absl::OkStatus();
  }));
  pipeline->Submit(std::make_shared<TestJob>(1, &log, [&](size_t stage) {
    if (stage == 0) {
      first_began_again.set_value();
      second_began.get_future().wait();
    }
    return absl::OkStatus();
  }));
  log.AwaitDone(2);
  EXPECT_THAT(log.done(), ElementsAre(0, 1));
}

TEST(PipelineTest, SubmitWaitsForRoom) {
  Log log;
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future().share();
  std::atomic<int> submitted = 0;
  auto pipeline = Make({"a", "b"});
  std::thread submitter([&] {
    for (int i = 0; i < 8; ++i) {
      pipeline->Submit(std::make_shared<TestJob>(i, &log, [&](size_t stage) {
        if (stage == 1) gate.wait();
        return absl::OkStatus();
      }));
      ++submitted;
    }
  });
  // One job is in the second stage and one before it; one is in the first, which can't go on, and
  // one before that.
  while (submitted < 4) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(submitted, 4);
  go.set_value();
  submitter.join();
  log.AwaitDone(8);
  EXPECT_GT(pipeline->counters()[0].blocked_ns, 0u);
}

TEST(PipelineTest, WhatIsBehindAFailureDoesNotRun) {
  Log log;
  std::promise<void> go;
  auto gate = go.get_future().share();
  auto pipeline = Make({"a", "b", "c"}, 4);
  // Job 0 is in the last stage, and 1 waits for it, when job 2 fails in the middle.
  pipeline->Submit(std::make_shared<TestJob>(0, &log, [&](size_t stage) {
    if (stage == 2) gate.wait();
    return absl::OkStatus();
  }));
  pipeline->Submit(std::make_shared<TestJob>(1, &log));
  pipeline->Submit(std::make_shared<TestJob>(2, &log, [&](size_t stage) {
    return stage == 1 ? absl::DataLossError("the device is gone") : absl::OkStatus();
  }));
  log.AwaitDone(1);
  pipeline->Submit(std::make_shared<TestJob>(3, &log));
  log.AwaitDone(2);
  go.set_value();
  log.AwaitDone(4);
  EXPECT_TRUE(log.status(0).ok());
  EXPECT_TRUE(log.status(1).ok());
  EXPECT_TRUE(absl::IsDataLoss(log.status(2)));
  EXPECT_EQ(log.stage(2), 1u);
  EXPECT_TRUE(absl::IsAborted(log.status(3)));
  EXPECT_THAT(log.ran(1), ElementsAre(0, 1, 2));
  EXPECT_THAT(log.ran(2), ElementsAre(0, 1));
}

TEST(PipelineTest, WhatIsThrownIsAStatus) {
  Log log;
  auto pipeline = Make({"a"});
  pipeline->Submit(
      std::make_shared<TestJob>(0, &log, [](size_t) -> absl::Status { throw std::bad_alloc(); }));
  log.AwaitDone(1);
  EXPECT_TRUE(absl::IsResourceExhausted(log.status(0)));
}

TEST(PipelineTest, AHangingStageIsSeenAndLeftBehind) {
  Log log;
  std::promise<void> release;
  auto gate = release.get_future().share();
  std::promise<void> left;
  auto pipeline = Make({"a", "b"});
  pipeline->Submit(std::make_shared<TestJob>(0, &log, [&, gate](size_t stage) {
    if (stage == 1) {
      gate.wait();
      left.set_value();
    }
    return absl::OkStatus();
  }));
  absl::InlinedVector<Pipeline::Running, 8> running;
  while (running.empty() || running[0].stage != 1 || running[0].time < milliseconds(5)) {
    running = pipeline->AllRunning();
  }
  EXPECT_EQ(running.size(), 1u);
  pipeline->Submit(std::make_shared<TestJob>(1, &log));
  pipeline->Abandon(absl::DeadlineExceededError("too long"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(log.status(0)));
  EXPECT_EQ(log.stage(0), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(log.status(1)));
  pipeline->Submit(std::make_shared<TestJob>(2, &log));
  EXPECT_TRUE(absl::IsAborted(log.status(2)));
  pipeline.reset();  // does not wait for it
  release.set_value();
  left.get_future().wait();
  for (int job = 0; job < 3; ++job) EXPECT_EQ(log.ends(job), 1);
}

TEST(PipelineTest, EveryJobIsToldOnceWhenItIsAbandonedAtAnyMoment) {
  for (int round = 0; round < 100; ++round) {
    Log log;
    auto pipeline = Make({"a", "b", "c"});
    std::thread submitter([&] {
      for (int i = 0; i < 12; ++i) {
        pipeline->Submit(std::make_shared<TestJob>(i, &log, [](size_t) {
          std::this_thread::yield();
          return absl::OkStatus();
        }));
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(10 * round));
    pipeline->Abandon(absl::CancelledError("enough"));
    submitter.join();
    log.AwaitDone(12);
    for (int i = 0; i < 12; ++i) ASSERT_EQ(log.ends(i), 1) << "job " << i << ", round " << round;
    // Threads that return end by themselves; the log must outlive what they still run.
    while (!pipeline->AllRunning().empty()) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(PipelineTest, OneStageMayRunOnTheCaller) {
  Log log;
  auto pipeline = Make({"a"}, 1, true);
  std::thread::id ran_on;
  pipeline->Submit(std::make_shared<TestJob>(0, &log, [&](size_t) {
    ran_on = std::this_thread::get_id();
    return absl::OkStatus();
  }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_THAT(log.done(), ElementsAre(0));
  EXPECT_EQ(pipeline->counters()[0].jobs, 1u);
}

// One job at a time: while it is in one stage the other waits, and between jobs no stage does.
TEST(PipelineTest, WaitingIsCountedWhileThereIsWorkElsewhere) {
  Log log;
  PipelineOptions options;
  options.stages = {"a", "b"};
  options.trace = std::make_shared<Trace>();
  for (const std::string& name : options.stages) {
    options.tracks.push_back(options.trace->AddTrack(name));
  }
  const std::shared_ptr<Trace> trace = options.trace;
  auto pipeline = Pipeline::Create(std::move(options));
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    (*pipeline)->Submit(std::make_shared<TestJob>(i, &log, [](size_t stage) {
      std::this_thread::sleep_for(milliseconds(stage == 0 ? 20 : 30));
      return absl::OkStatus();
    }));
    log.AwaitDone(static_cast<size_t>(i) + 1);
    std::this_thread::sleep_for(milliseconds(100));  // waits for nothing
  }
  const uint64_t wall = static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  const std::vector<StageCounters> counters = (*pipeline)->counters();
  EXPECT_GE(counters[0].waiting_ns, 90'000'000u);
  EXPECT_GE(counters[1].waiting_ns, 60'000'000u);
  for (const StageCounters& c : counters) {
    EXPECT_LE(c.waiting_ns + c.busy_ns, wall - 300'000'000u);
  }
  const std::string json = trace->Json();
  size_t bubbles = 0;
  for (size_t at = 0; (at = json.find("bubble", at)) != std::string::npos; ++at) ++bubbles;
  EXPECT_GE(bubbles, 6u);
}

// A refused job never was in the pipeline.
TEST(PipelineTest, WhoComesTooLateIsNotCounted) {
  Log log;
  auto pipeline = Make({"a", "b"});
  pipeline->Abandon(absl::AbortedError("enough"));
  pipeline->Submit(std::make_shared<TestJob>(0, &log));
  EXPECT_EQ(log.ends(0), 1);
  for (const StageCounters& c : pipeline->counters()) EXPECT_EQ(c.waiting_ns, 0u);
}

}  // namespace
}  // namespace trine
