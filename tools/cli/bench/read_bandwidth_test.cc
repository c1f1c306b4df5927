#include "gtest/gtest.h"
#include "tools/cli/bench/memory_bandwidth.h"

namespace trine {
namespace {

TEST(ReadBandwidthTest, ReadsWhatIsAskedForWithAnyNumberOfThreads) {
  for (const uint32_t threads : {1u, 2u, 5u}) {
    const auto read = MeasureReadBandwidth(threads, 1 << 20);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_GT(read->bytes_per_second, 0);
    EXPECT_LE(read->bytes, 1u << 20);
    EXPECT_GT(read->bytes, (1u << 20) - 5 * 128);
  }
  const auto least = MeasureReadBandwidth(3, 1);
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->bytes, 3 * 128u);  // two lines per thread
}

// Asks for more memory than there is: the size must be capped, not refused.
TEST(ReadBandwidthTest, TakesNoMoreThanThereIs) {
  const auto read = MeasureReadBandwidth(1, 64 << 20);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_LE(read->bytes, 64u << 20);
}

}  // namespace
}  // namespace trine
