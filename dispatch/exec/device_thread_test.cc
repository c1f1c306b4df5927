#include "dispatch/exec/device_thread.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"

namespace trine {
namespace {

TEST(DeviceThreadTest, DoesWhatIsAskedOnceForEachStart) {
  int asked = 0, done = 0;
  std::thread::id who;
  auto thread = DeviceThread::Create([&] {
    who = std::this_thread::get_id();
    done += asked;
    return absl::OkStatus();
  });
  ASSERT_TRUE(thread.ok()) << thread.status();
  int sum = 0;
  for (int i = 1; i <= 2000; ++i) {
    asked = i;
    sum += i;
    (*thread)->Start();
    EXPECT_TRUE((*thread)->Finish().ok());
    ASSERT_EQ(done, sum);
  }
  EXPECT_NE(who, std::this_thread::get_id());
}

TEST(DeviceThreadTest, WhoStartsItGoesOnMeanwhile) {
  std::atomic<int> met = 0;
  auto thread = DeviceThread::Create([&] {
    ++met;
    while (met != 2) std::this_thread::yield();
    return absl::OkStatus();
  });
  ASSERT_TRUE(thread.ok()) << thread.status();
  (*thread)->Start();
  while (met != 1) std::this_thread::yield();
  ++met;
  EXPECT_TRUE((*thread)->Finish().ok());
}

TEST(DeviceThreadTest, AFailureIsTheOneStartsOwn) {
  int runs = 0;
  auto thread = DeviceThread::Create(
      [&] { return ++runs == 2 ? absl::DataLossError("the second") : absl::OkStatus(); });
  ASSERT_TRUE(thread.ok()) << thread.status();
  for (int i = 1; i <= 3; ++i) {
    (*thread)->Start();
    EXPECT_EQ((*thread)->Finish().ok(), i != 2);
  }
}

TEST(DeviceThreadTest, WhatIsThrownIsAStatus) {
  auto thread = DeviceThread::Create([]() -> absl::Status { throw std::runtime_error("enough"); });
  ASSERT_TRUE(thread.ok()) << thread.status();
  (*thread)->Start();
  EXPECT_EQ((*thread)->Finish(), absl::InternalError("enough"));
}

TEST(DeviceThreadTest, OneThatWasNeverStartedEnds) {
  EXPECT_TRUE(DeviceThread::Create([] { return absl::OkStatus(); }).ok());
}

}  // namespace
}  // namespace trine
