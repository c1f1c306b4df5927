#include "tools/server/service/heap_trimmer.h"

#include <gtest/gtest.h>

namespace trine::server {
namespace {

using std::chrono::seconds;

TEST(HeapTrimmerTest, TrimsAfterLargeBodiesOnly) {
  HeapTrimmer heap;
  const auto now = HeapTrimmer::Clock::now();
  EXPECT_FALSE(heap.Tick(true, now));
  heap.OnBody(1000);
  EXPECT_FALSE(heap.Tick(true, now));
  heap.OnBody(size_t{8} << 20);
  EXPECT_TRUE(heap.Tick(true, now));
  EXPECT_FALSE(heap.Tick(true, now + seconds(60)));
}

TEST(HeapTrimmerTest, TrimsNowAndThenWhileBusyAndOnceMoreWhenIdle) {
  HeapTrimmer heap;
  const auto now = HeapTrimmer::Clock::now();
  heap.OnBody(size_t{8} << 20);
  EXPECT_TRUE(heap.Tick(false, now));
  heap.OnBody(size_t{8} << 20);
  EXPECT_FALSE(heap.Tick(false, now + seconds(1)));
  EXPECT_TRUE(heap.Tick(false, now + seconds(10)));
  EXPECT_FALSE(heap.Tick(false, now + seconds(60)));
  EXPECT_TRUE(heap.Tick(true, now + seconds(60)));
  EXPECT_FALSE(heap.Tick(true, now + seconds(60)));
}

}  // namespace
}  // namespace trine::server
