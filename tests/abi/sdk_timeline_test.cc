#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "trine/sdk/timeline.h"

struct trine_timeline : trine::sdk::Timeline {
  using Timeline::Timeline;
};

namespace trine::sdk {
namespace {

constexpr uint64_t kForever = UINT64_MAX;
constexpr uint64_t kSoon = 20'000'000;  // 20 ms

TEST(TimelineTest, ValuesOnlyGrow) {
  Timeline t(5);
  uint64_t value = 0;
  EXPECT_EQ(t.Query(&value, nullptr), TRINE_OK);
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(t.Signal(5, nullptr), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(t.Signal(4, nullptr), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(t.Signal(UINT64_MAX, nullptr), TRINE_OK);
  EXPECT_EQ(t.Query(&value, nullptr), TRINE_OK);
  EXPECT_EQ(value, UINT64_MAX);
}

TEST(TimelineTest, WaitsEndWithTheDeadline) {
  Timeline t(0);
  EXPECT_EQ(t.Wait(0, 0, nullptr), TRINE_OK);
  EXPECT_EQ(t.Wait(1, 0, nullptr), TRINE_DEADLINE_EXCEEDED);
  EXPECT_EQ(t.Wait(1, kSoon, nullptr), TRINE_DEADLINE_EXCEEDED);
}

TEST(TimelineTest, AFailureIsKeptWithTheValue) {
  Timeline t(3);
  trine_error err{};
  EXPECT_EQ(t.SetFailed(TRINE_OK, "", &err), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(t.SetFailed(TRINE_DEADLINE_EXCEEDED, "", &err), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(t.Wait(4, 0, &err), TRINE_DEADLINE_EXCEEDED);
  EXPECT_EQ(t.SetFailed(TRINE_UNAVAILABLE, "the device is gone", &err), TRINE_OK);
  EXPECT_EQ(t.SetFailed(TRINE_INTERNAL, "later", &err), TRINE_OK);  // the first failure stays
  EXPECT_EQ(t.Wait(3, 0, &err), TRINE_OK);                          // was reached before
  EXPECT_EQ(t.Wait(4, kForever, &err), TRINE_UNAVAILABLE);
  EXPECT_STREQ(err.message, "the device is gone");
  EXPECT_EQ(t.Signal(4, &err), TRINE_UNAVAILABLE);
  uint64_t value = 0;
  EXPECT_EQ(t.Query(&value, &err), TRINE_UNAVAILABLE);
  EXPECT_EQ(value, 3u);
}

// Otherwise a waiter would take the point for one not yet reached.
TEST(TimelineTest, WorkThatEndsWithADeadlineFailsItsPoint) {
  Timeline t(0);
  Settle(t, 1, TRINE_DEADLINE_EXCEEDED, "the driver took too long");
  trine_error err{};
  EXPECT_EQ(t.Wait(1, kForever, &err), TRINE_INTERNAL);
  EXPECT_STREQ(err.message, "the driver took too long");
}

TEST(TimelineTest, WakesEveryWaiter) {
  Timeline t(0);
  std::atomic<int> reached{0};
  std::vector<std::thread> waiters;
  for (uint64_t value = 1; value <= 4; ++value) {
    waiters.emplace_back([&, value] { reached += t.Wait(value, kForever, nullptr) == TRINE_OK; });
  }
  for (uint64_t value = 1; value <= 4; ++value) EXPECT_EQ(t.Signal(value, nullptr), TRINE_OK);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(reached, 4);
}

TEST(TimelineTest, AFailureWakesEveryWaiter) {
  Timeline t(0);
  std::atomic<int> failed{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] { failed += t.Wait(1, kForever, nullptr) == TRINE_ABORTED; });
  }
  EXPECT_EQ(t.SetFailed(TRINE_ABORTED, "", nullptr), TRINE_OK);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(failed, 4);
}

class SubmitTest : public testing::Test {
 protected:
  trine_status Submit(std::vector<trine_point> waits, std::vector<trine_point> signals,
                      trine_status outcome = TRINE_OK) {
    trine_sync sync{};
    sync.n_waits = static_cast<uint32_t>(waits.size());
    sync.n_signals = static_cast<uint32_t>(signals.size());
    sync.point_stride = sizeof(trine_point);
    sync.waits = waits.data();
    sync.signals = signals.data();
    return SubmitSynchronously(
        sync, [](trine_timeline* t) -> Timeline& { return *t; }, &err_,
        [&](trine_error* err) -> trine_status {
          ++runs_;
          if (throws_) throw std::runtime_error("thrown");
          return outcome == TRINE_OK ? TRINE_OK : Fail(err, outcome, "the body's words");
        });
  }
  static uint64_t Value(trine_timeline& t) {
    uint64_t value = 0;
    t.Query(&value, nullptr);
    return value;
  }

  trine_timeline a_{0}, b_{0};
  trine_error err_{};
  std::atomic<int> runs_{0};
  bool throws_ = false;
};

TEST_F(SubmitTest, WithoutSignalsTheAnswerIsTheOutcome) {
  EXPECT_EQ(Submit({}, {}), TRINE_OK);
  EXPECT_EQ(Submit({}, {}, TRINE_DATA_LOSS), TRINE_DATA_LOSS);
  EXPECT_STREQ(err_.message, "the body's words");
  throws_ = true;
  EXPECT_EQ(Submit({}, {}), TRINE_INTERNAL);
}

TEST_F(SubmitTest, WithSignalsTheOutcomeIsTheirs) {
  EXPECT_EQ(Submit({}, {{&a_, 1}, {&b_, 7}}), TRINE_OK);
  EXPECT_EQ(Value(a_), 1u);
  EXPECT_EQ(Value(b_), 7u);
  EXPECT_EQ(Submit({}, {{&a_, 2}, {&b_, 8}}, TRINE_DATA_LOSS), TRINE_OK);
  EXPECT_EQ(a_.Wait(2, 0, &err_), TRINE_DATA_LOSS);
  EXPECT_STREQ(err_.message, "the body's words");
  EXPECT_EQ(b_.Wait(8, 0, nullptr), TRINE_DATA_LOSS);
}

TEST_F(SubmitTest, AnExceptionFailsTheSignals) {
  throws_ = true;
  EXPECT_EQ(Submit({}, {{&a_, 1}}), TRINE_OK);
  EXPECT_EQ(a_.Wait(1, 0, &err_), TRINE_INTERNAL);
  EXPECT_STREQ(err_.message, "thrown");
}

TEST_F(SubmitTest, AFailedWaitFailsTheSignalsAndRunsNothing) {
  a_.SetFailed(TRINE_UNAVAILABLE, "gone", nullptr);
  EXPECT_EQ(Submit({{&a_, 1}}, {{&b_, 1}}), TRINE_OK);
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(b_.Wait(1, 0, &err_), TRINE_UNAVAILABLE);
  EXPECT_STREQ(err_.message, "gone");
}

// The failure is another device's: the caller must not take it for the loss of this one.
TEST_F(SubmitTest, AFailedWaitWithoutSignalsIsAborted) {
  a_.SetFailed(TRINE_UNAVAILABLE, "gone", nullptr);
  EXPECT_EQ(Submit({{&a_, 1}}, {}), TRINE_ABORTED);
  EXPECT_STREQ(err_.message, "a wait has failed: gone");
  EXPECT_EQ(runs_, 0);
}

TEST_F(SubmitTest, BlocksUntilItsWaitsAreReached) {
  std::thread submitter([&] { EXPECT_EQ(Submit({{&a_, 1}}, {{&b_, 1}}), TRINE_OK); });
  EXPECT_EQ(b_.Wait(1, kSoon, nullptr), TRINE_DEADLINE_EXCEEDED);
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(a_.Signal(1, nullptr), TRINE_OK);
  EXPECT_EQ(b_.Wait(1, kForever, nullptr), TRINE_OK);
  submitter.join();
  EXPECT_EQ(runs_, 1);
}

TEST_F(SubmitTest, RefusesPointsNoSubmissionCanHave) {
  EXPECT_EQ(Submit({{nullptr, 1}}, {{&a_, 1}}), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Submit({}, {{nullptr, 1}}), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Submit({}, {{&a_, 1}, {&b_, 0}}), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(Value(a_), 0u);  // a call that fails leaves its signals alone
  EXPECT_EQ(a_.Wait(1, 0, nullptr), TRINE_DEADLINE_EXCEEDED);
}

TEST_F(SubmitTest, ATimelineThatFailedMeanwhileKeepsItsFailure) {
  a_.SetFailed(TRINE_ABORTED, "first", nullptr);
  EXPECT_EQ(Submit({}, {{&a_, 1}, {&b_, 1}}), TRINE_OK);
  EXPECT_EQ(a_.Wait(1, 0, nullptr), TRINE_ABORTED);
  EXPECT_EQ(b_.Wait(1, 0, nullptr), TRINE_OK);
}

}  // namespace
}  // namespace trine::sdk
