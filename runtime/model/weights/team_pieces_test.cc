#include "runtime/model/weights/team_pieces.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>

namespace trine {
namespace {

class TeamPiecesTest : public testing::TestWithParam<uint32_t> {
 protected:
  HostServices host_{ThreadTeamOptions{GetParam(), {}}, nullptr};
  // Empty, small, larger than a piece, units larger than a piece.
  std::vector<TeamRange> ranges_ = {{0, 8}, {5, 8}, {1 << 20, 34}, {7, 3 << 20}, {1, 1}};
};

TEST_P(TeamPiecesTest, EveryUnitOnceAndProgressToTheEnd) {
  std::vector<std::unique_ptr<std::atomic<int>[]>> seen;
  uint64_t bytes = 0;
  for (const TeamRange& r : ranges_) {
    seen.emplace_back(new std::atomic<int>[r.units + 1] {});
    bytes += r.units * r.unit_bytes;
  }
  double last = 0;
  LoadMeter meter([&](double fraction) {
    EXPECT_GE(fraction, last);
    last = fraction;
    return true;
  });
  meter.Expect(bytes);
  const absl::Status status = RunPieces(
      ranges_, host_,
      [&](size_t range, uint64_t begin, uint64_t end) {
        for (uint64_t u = begin; u < end; ++u) ++seen[range][u];
        return absl::OkStatus();
      },
      &meter);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(last, 1);
  for (size_t r = 0; r < ranges_.size(); ++r) {
    for (uint64_t u = 0; u < ranges_[r].units; ++u) ASSERT_EQ(seen[r][u], 1) << r << " " << u;
  }
}

TEST_P(TeamPiecesTest, TheFirstFailureIsTold) {
  LoadMeter meter(nullptr);
  const auto fail = [&](size_t range, uint64_t, uint64_t) -> absl::Status {
    if (range == 1) return absl::InvalidArgumentError("first");
    if (range == 3) return absl::InvalidArgumentError("later");
    return absl::OkStatus();
  };
  EXPECT_EQ(RunPieces(ranges_, host_, fail, &meter).message(), "first");
  const auto no_memory = [](size_t, uint64_t, uint64_t) -> absl::Status { throw std::bad_alloc(); };
  EXPECT_TRUE(absl::IsResourceExhausted(RunPieces(ranges_, host_, no_memory, &meter)));
}

TEST_P(TeamPiecesTest, CanBeCancelled) {
  LoadMeter meter([](double) { return false; });
  meter.Expect(1);
  const auto nothing = [](size_t, uint64_t, uint64_t) { return absl::OkStatus(); };
  EXPECT_TRUE(absl::IsCancelled(RunPieces(ranges_, host_, nothing, &meter)));
}

INSTANTIATE_TEST_SUITE_P(Workers, TeamPiecesTest, testing::Values(1, 2, 5));

}  // namespace
}  // namespace trine
