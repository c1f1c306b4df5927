#include "runtime/quantize/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <string>
#include <vector>

namespace trine::quantize {
namespace {

TEST(OrderedWorkTest, ResultsComeInOrderFromTheirSlots) {
  for (const uint32_t threads : {0u, 1u, 2u, 7u}) {
    std::vector<int64_t> slots(SlotsFor(threads), -1);
    std::vector<int64_t> results;
    const absl::Status status = RunInOrder(
        500, threads,
        [&](int64_t job, size_t slot) {
          slots.at(slot) = job * job;
          return absl::OkStatus();
        },
        [&](int64_t job, size_t slot) {
          EXPECT_EQ(slots.at(slot), job * job);
          results.push_back(slots.at(slot));
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    ASSERT_EQ(results.size(), 500u);
    for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(results[static_cast<size_t>(i)], i * i);
  }
}

TEST(OrderedWorkTest, TheFirstErrorInOrderIsTheResult) {
  for (const uint32_t threads : {0u, 1u, 4u}) {
    int64_t consumed = 0;
    const absl::Status status = RunInOrder(
        100, threads,
        [&](int64_t job, size_t) {
          return job == 30 || job == 31 ? absl::InternalError(std::to_string(job))
                                        : absl::OkStatus();
        },
        [&](int64_t, size_t) {
          ++consumed;
          return absl::OkStatus();
        });
    EXPECT_EQ(status.message(), "30");
    EXPECT_EQ(consumed, 30);
  }
}

TEST(OrderedWorkTest, AConsumerThatFailsEndsTheWork) {
  std::atomic<int64_t> produced = 0;
  const absl::Status status = RunInOrder(
      1'000'000, 3,
      [&](int64_t, size_t) {
        ++produced;
        return absl::OkStatus();
      },
      [&](int64_t job, size_t) {
        return job == 5 ? absl::CancelledError("enough") : absl::OkStatus();
      });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_LE(produced, 5 + 1 + static_cast<int64_t>(SlotsFor(3)));  // no thread ran further ahead
}

TEST(OrderedWorkTest, RunningOutOfMemoryIsAnError) {
  const auto fine = [](int64_t, size_t) { return absl::OkStatus(); };
  const auto out_of_memory = [](int64_t job, size_t) {
    if (job == 7) throw std::bad_alloc();
    return absl::OkStatus();
  };
  for (const uint32_t threads : {0u, 1u, 4u}) {
    EXPECT_TRUE(absl::IsResourceExhausted(RunInOrder(50, threads, out_of_memory, fine)));
    EXPECT_TRUE(absl::IsResourceExhausted(RunInOrder(50, threads, fine, out_of_memory)));
  }
}

TEST(OrderedWorkTest, NoJobsAreNoWork) {
  const auto never = [](int64_t, size_t) { return absl::InternalError("called"); };
  EXPECT_TRUE(RunInOrder(0, 2, never, never).ok());
}

}  // namespace
}  // namespace trine::quantize
