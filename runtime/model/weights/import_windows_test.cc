#include <ostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/model/weights/weight_arena.h"

namespace trine {

void PrintTo(const ByteRange& range, std::ostream* out) {
  *out << "[" << range.begin << ", " << range.end << ")";
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kPage = 4096, kMiB = 1 << 20, kMuch = 1 << 30;

TEST(ImportWindowsTest, NothingNeedsNothing) {
  EXPECT_THAT(ImportWindows({}, kPage, 0, kMuch), IsEmpty());
}

TEST(ImportWindowsTest, NeighboursAreOneWindowInWholePages) {
  EXPECT_THAT(ImportWindows({{9000, 9100}, {100, 200}, {4000, 5000}}, kPage, 0, kMuch),
              ElementsAre(ByteRange{0, 3 * kPage}));
}

TEST(ImportWindowsTest, LargeGapsAreLeftOut) {
  EXPECT_THAT(ImportWindows({{0, 10}, {8 * kMiB, 8 * kMiB + 1}}, kPage, 0, kMuch),
              ElementsAre(ByteRange{0, kPage}, ByteRange{8 * kMiB, 8 * kMiB + kPage}));
}

TEST(ImportWindowsTest, NoWindowIsLargerThanAnAllocation) {
  EXPECT_THAT(ImportWindows({{0, 6000}, {6000, 9000}, {9000, 20000}}, kPage, 3 * kPage, kMuch),
              ElementsAre(ByteRange{0, 3 * kPage}, ByteRange{2 * kPage, 5 * kPage}));
}

TEST(ImportWindowsTest, ARangeIsNeverCut) {
  EXPECT_THAT(ImportWindows({{0, 10 * kPage}}, kPage, kPage, kMuch),
              ElementsAre(ByteRange{0, 10 * kPage}));
}

TEST(ImportWindowsTest, TheMemoryEndsWhereItEnds) {
  EXPECT_THAT(ImportWindows({{0, 9000}}, 65536, 0, 3 * kPage),
              ElementsAre(ByteRange{0, 3 * kPage}));
}

TEST(ImportWindowsTest, OneInsideAnotherChangesNothing) {
  EXPECT_THAT(ImportWindows({{0, 9000}, {10, 20}}, kPage, 0, kMuch),
              ElementsAre(ByteRange{0, 3 * kPage}));
}

}  // namespace
}  // namespace trine
