#include "backends/hip/submissions.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/hip/gpu/emulated_runtime.h"

namespace trine::hip {
namespace {

using ::testing::ElementsAre;

class HipSubmissionsTest : public ::testing::Test {
 protected:
  HipSubmissionsTest() {
    emulator::Reset({});
    gpu_ = *GpuDevice::Open(0);
    submissions_ = std::make_unique<Submissions>(gpu_.get());
  }
  ~HipSubmissionsTest() override {
    submissions_.reset();
    emulator::Reset({});
  }

  void Add(std::vector<SyncPoint> waits, std::vector<SyncPoint> signals, int name) {
    submissions_->Add(std::move(waits), std::move(signals), [this, name] {
      done_.push_back(name);  // the device's thread alone
      return absl::OkStatus();
    });
  }
  static trine_status Reach(sdk::Timeline& timeline, uint64_t value, std::string* why = nullptr) {
    trine_error err{};
    const trine_status status = timeline.Wait(value, 5'000'000'000, &err);
    if (why != nullptr) *why = err.message;
    return status;
  }

  std::unique_ptr<GpuDevice> gpu_;
  std::unique_ptr<Submissions> submissions_;
  std::vector<int> done_;
};

TEST_F(HipSubmissionsTest, GoInTheOrderOfTheirTimelines) {
  sdk::Timeline a(0), b(0);
  Add({{&a, 2}}, {{&b, 1}}, 3);  // of what comes later, and of the host
  Add({{&a, 1}}, {{&a, 2}}, 2);
  Add({}, {{&b, 7}}, 9);
  EXPECT_EQ(Reach(b, 7), TRINE_OK);
  uint64_t value = 0;
  EXPECT_EQ(a.Query(&value, nullptr), TRINE_OK);
  EXPECT_EQ(value, 0u);
  ASSERT_EQ(a.Signal(1, nullptr), TRINE_OK);
  EXPECT_EQ(Reach(a, 2), TRINE_OK);
  submissions_.reset();
  EXPECT_THAT(done_, ElementsAre(9, 2, 3));
}

TEST_F(HipSubmissionsTest, AFailedWaitFailsWhatWaits) {
  sdk::Timeline a(0), b(0);
  Add({{&a, 1}}, {{&b, 1}}, 1);
  ASSERT_EQ(a.SetFailed(TRINE_DATA_LOSS, "a broken disk", nullptr), TRINE_OK);
  std::string why;
  EXPECT_EQ(Reach(b, 1, &why), TRINE_DATA_LOSS);
  EXPECT_EQ(why, "a broken disk");
  EXPECT_THAT(done_, ElementsAre());
}

TEST_F(HipSubmissionsTest, AFailedStartFailsItsSignals) {
  sdk::Timeline a(0), b(0);
  submissions_->Add({}, {{&a, 1}}, [] { return absl::UnavailableError("the device is gone"); });
  Add({{&a, 1}}, {{&b, 1}}, 2);
  std::string why;
  EXPECT_EQ(Reach(b, 1, &why), TRINE_UNAVAILABLE);
  EXPECT_EQ(why, "the device is gone");
}

TEST_F(HipSubmissionsTest, EndWithTheDevice) {
  sdk::Timeline never(0), a(0), b(0);
  Add({{&never, 1}}, {{&a, 1}}, 1);
  Add({}, {{&b, 1}}, 2);
  submissions_.reset();
  EXPECT_EQ(Reach(b, 1), TRINE_OK);
  EXPECT_EQ(Reach(a, 1), TRINE_CANCELLED);
}

// Work that need not wait begins on the caller's thread. Its points are reached when a thread asks.
TEST_F(HipSubmissionsTest, BeginOnTheCallersThread) {
  sdk::Timeline a(0), b(0);
  std::thread::id began;
  const auto begin = [&] {
    began = std::this_thread::get_id();
    return absl::OkStatus();
  };
  submissions_->StartOrAdd({}, {{&a, 1}, {&b, 5}}, begin);
  EXPECT_EQ(began, std::this_thread::get_id());
  EXPECT_EQ(Reach(a, 1), TRINE_OK);
  EXPECT_EQ(Reach(b, 5), TRINE_OK);
  // Starts work behind other work that no thread has waited for.
  began = {};
  submissions_->StartOrAdd({{&a, 1}}, {{&a, 2}}, begin);
  submissions_->StartOrAdd({{&a, 2}}, {{&a, 3}}, begin);
  EXPECT_EQ(began, std::this_thread::get_id());
  uint64_t value = 0;
  EXPECT_EQ(a.Query(&value, nullptr), TRINE_OK);
  EXPECT_EQ(value, 3u);
  // What must wait begins on the device's thread, when the host signals.
  submissions_->StartOrAdd({{&a, 4}}, {{&b, 6}}, begin);
  ASSERT_EQ(a.Signal(4, nullptr), TRINE_OK);
  EXPECT_EQ(Reach(b, 6), TRINE_OK);
  EXPECT_NE(began, std::this_thread::get_id());
}

TEST_F(HipSubmissionsTest, WorkThatGoesOnIsNotReached) {
  emulator::DeviceSettings late;
  late.pace = emulator::Pace::kOldest;
  emulator::Reset(late);
  sdk::Timeline a(0);
  submissions_->StartOrAdd({}, {{&a, 1}}, [] { return absl::OkStatus(); });
  EXPECT_EQ(a.Wait(1, 0, nullptr), TRINE_DEADLINE_EXCEEDED);
  EXPECT_EQ(a.Wait(1, 1'000'000'000, nullptr), TRINE_OK);
}

// Both threads put work on one timeline, and one waits for the other.
TEST_F(HipSubmissionsTest, BothThreadsShareATimeline) {
  sdk::Timeline a(0);
  const auto begin = [] { return absl::OkStatus(); };
  for (uint64_t i = 1; i <= 100; ++i) {
    if (i % 2 == 1) {
      submissions_->StartOrAdd({{&a, i - 1}}, {{&a, i}}, begin);
    } else {
      submissions_->Add({{&a, i - 1}}, {{&a, i}}, begin);
    }
  }
  EXPECT_EQ(Reach(a, 100), TRINE_OK);
}

TEST_F(HipSubmissionsTest, AFailedStartOnTheCallersThreadFailsItsSignals) {
  sdk::Timeline a(0), b(0);
  submissions_->StartOrAdd({}, {{&a, 1}}, [] { return absl::UnavailableError("gone"); });
  submissions_->StartOrAdd({{&a, 1}}, {{&b, 1}}, [] { return absl::OkStatus(); });
  std::string why;
  EXPECT_EQ(Reach(b, 1, &why), TRINE_UNAVAILABLE);
  EXPECT_EQ(why, "gone");
}

TEST_F(HipSubmissionsTest, ManyAreSettledInOrder) {
  sdk::Timeline a(0);
  for (uint64_t i = 1; i <= 500; ++i) {
    Add(i > 1 ? std::vector<SyncPoint>{{&a, i - 1}} : std::vector<SyncPoint>{}, {{&a, i}},
        static_cast<int>(i));
  }
  EXPECT_EQ(Reach(a, 500), TRINE_OK);
  submissions_.reset();
  ASSERT_EQ(done_.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(done_[static_cast<size_t>(i)], i + 1);
}

}  // namespace
}  // namespace trine::hip
