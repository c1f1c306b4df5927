#include "backends/hip/submissions.h"

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
