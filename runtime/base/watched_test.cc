#include "runtime/base/watched.h"

#include <atomic>
#include <stdexcept>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using namespace std::chrono_literals;

// Takes long to be destroyed, like a model on a slow device.
struct Slow {
  explicit Slow(std::atomic<int>* gone) : gone(gone) {}
  ~Slow() {
    std::this_thread::sleep_for(50ms);
    last_thread = std::this_thread::get_id();
    ++*gone;
  }
  std::atomic<int>* const gone;
  static inline std::thread::id last_thread;
};

bool WaitUntilExpired(const std::weak_ptr<void>& life) {
  for (int i = 0; i < 5000 && !life.expired(); ++i) std::this_thread::sleep_for(1ms);
  return life.expired();
}

TEST(WatchedTest, GivesWhatCameOfIt) {
  Watched<absl::StatusOr<int>> work([]() -> absl::StatusOr<int> { return 7; });
  ASSERT_TRUE(work.WaitFor(10s));
  EXPECT_EQ(work.Take().value(), 7);
  Watched<absl::Status> throws([]() -> absl::Status { throw std::runtime_error("why"); });
  ASSERT_TRUE(throws.WaitFor(10s));
  EXPECT_EQ(throws.Take(), absl::InternalError("why"));
}

TEST(WatchedTest, TheWorkIsGoneWhenItIsDone) {
  std::atomic<int> gone = 0;
  Watched<absl::Status> work([slow = std::make_shared<Slow>(&gone)] { return absl::OkStatus(); });
  ASSERT_TRUE(work.WaitFor(10s));
  EXPECT_EQ(gone, 1);
  EXPECT_NE(Slow::last_thread, std::this_thread::get_id());
}

// When the life has expired, what the work used may be destroyed.
TEST(WatchedTest, LifeEndsAfterWhatWasLeft) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> gone = 0;
    std::atomic<bool> go = false;
    std::weak_ptr<void> life;
    {
      Watched<absl::StatusOr<std::unique_ptr<Slow>>> work(
          [&gone, &go]() -> absl::StatusOr<std::unique_ptr<Slow>> {
            while (!go) std::this_thread::sleep_for(1ms);
            return std::make_unique<Slow>(&gone);
          });
      EXPECT_FALSE(work.WaitFor(5ms));
      ASSERT_TRUE(work.Leave());
      life = work.life();
    }
    go = true;
    ASSERT_TRUE(WaitUntilExpired(life));
    ASSERT_EQ(gone, 1);
    EXPECT_NE(Slow::last_thread, std::this_thread::get_id());
  }
}

TEST(WatchedTest, WhatIsDoneIsNotLeft) {
  Watched<absl::Status> work([] { return absl::OkStatus(); });
  ASSERT_TRUE(work.WaitFor(10s));
  EXPECT_FALSE(work.Leave());
  EXPECT_TRUE(work.Take().ok());
  EXPECT_TRUE(WaitUntilExpired(work.life()));
}

}  // namespace
}  // namespace trine
