#include "backends/cpu/op_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "kernels/cpu/levels/levels.h"

namespace trine::cpu {
namespace {

using cpu_kernels::Way;

TEST(ShareTest, SharesCoverAllUnitsOnceAndInOrder) {
  for (const int64_t units : {0, 1, 15, 16, 17, 100, 4096}) {
    for (const int64_t multiple : {1, 4, 16}) {
      for (const uint32_t workers : {1u, 2u, 3u, 8u, 64u}) {
        int64_t next = 0;
        for (uint32_t w = 0; w < workers; ++w) {
          const reference::Range range = Share{w, workers}.Of(units, multiple);
          EXPECT_EQ(range.begin, next);
          EXPECT_GE(range.end, range.begin);
          EXPECT_TRUE(range.end == units || range.end % multiple == 0);
          next = range.end;
        }
        EXPECT_EQ(next, units);
      }
    }
  }
}

TEST(ShareTest, NobodyGetsMoreThanAPieceAboveTheMean) {
  for (uint32_t w = 0; w < 3; ++w) {
    const reference::Range range = Share{w, 3}.Of(100, 16);  // seven pieces
    EXPECT_LE(range.end - range.begin, 3 * 16);
    EXPECT_GE(range.end - range.begin, 16);
  }
}

TEST(OpFunctionTest, EveryOpOfTheAbiHasOne) {
  for (uint32_t kind = TRINE_OP_COPY; kind <= TRINE_OP_TOP_K; ++kind) {
    EXPECT_NE(FindOpFunction(kind), nullptr) << sdk::OpName(kind);
  }
  EXPECT_EQ(FindOpFunction(0), nullptr);
  EXPECT_EQ(FindOpFunction(TRINE_OP_TOP_K + 1), nullptr);
}

// A matmul whose kernel only counts how often it goes each way. One of the ways is slow.
class MatmulWaysTest : public testing::Test {
 protected:
  static constexpr int64_t kColumns = 4;

  MatmulWaysTest() {
    seen.clear();
    has_ways = true;
    table_.matmul = [](const auto&, const auto&, const auto*, const auto*, const auto&,
                       cpu_kernels::Range, const cpu_kernels::Tuning& tuning) {
      ++seen[tuning.way];
      const auto begin = std::chrono::steady_clock::now();
      const std::chrono::microseconds least(tuning.way == slow ? 50 : 1);
      while (std::chrono::steady_clock::now() - begin < least) {
      }
    };
    table_.matmul_has_ways = [](const cpu_kernels::View&, int64_t columns) {
      EXPECT_EQ(columns, kColumns);
      return has_ways;
    };
    x_.dims[1] = kColumns;
    y_.dims[0] = 64;
    call_.op = &op_;
    call_.kernels = &table_;
    call_.ways = &trials_.Of({quant::Type::kQ4_0, true, 32, 64});
    call_.is_warm = &is_warm_;
    call_.in[0] = &w_;
    call_.in[1] = &x_;
    call_.out[0] = &y_;
  }

  void Run(uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      for (uint32_t w = 0; w < 2; ++w) FindOpFunction(TRINE_OP_MATMUL)(call_, {w, 2});
    }
  }
  Way Chosen() { return call_.ways->For(kColumns).chosen(); }

  inline static std::map<Way, uint32_t> seen;
  inline static Way slow = Way::kTiles;
  inline static bool has_ways = true;

  cpu_kernels::KernelTable table_ = cpu_kernels::kReferenceLevel;
  sdk::Op op_;
  cpu_kernels::View w_, x_, y_;
  WayTrials trials_;
  OpCall call_;
  bool is_warm_ = true;
};

TEST_F(MatmulWaysTest, BothAreTriedAndTheFasterOneIsKept) {
  for (const Way slower : {Way::kDirect, Way::kTiles}) {
    slow = slower;
    seen.clear();
    WayTrials trials;
    call_.ways = &trials.Of({quant::Type::kQ4_0, true, 32, 64});
    Run(WayTrial::kSamples);
    EXPECT_EQ(seen[Way::kDirect], WayTrial::kSamples);
    EXPECT_EQ(seen[Way::kTiles], WayTrial::kSamples);
    const Way faster = slower == Way::kTiles ? Way::kDirect : Way::kTiles;
    EXPECT_EQ(Chosen(), faster);
    Run(10);
    EXPECT_EQ(seen[slower], WayTrial::kSamples);
    EXPECT_EQ(seen[faster], WayTrial::kSamples + 20);
    EXPECT_EQ(seen[Way::kUsual], 0u);
  }
}

// In the first run of a plan the weights have never been read.
TEST_F(MatmulWaysTest, AFirstRunIsNotTimed) {
  is_warm_ = false;
  Run(2 * WayTrial::kSamples);
  EXPECT_EQ(seen[Way::kUsual], 4 * WayTrial::kSamples);
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(Chosen(), Way::kUsual);
}

TEST_F(MatmulWaysTest, WithOneWayNothingIsTried) {
  has_ways = false;
  Run(2 * WayTrial::kSamples);
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[Way::kUsual], 4 * WayTrial::kSamples);
}

TEST_F(MatmulWaysTest, AShareOfNothingIsNoTurn) {
  y_.dims[0] = 16;  // enough for one worker only
  Run(2 * WayTrial::kSamples);
  EXPECT_NE(Chosen(), Way::kUsual);
  EXPECT_EQ(seen[Way::kDirect] + seen[Way::kTiles], 2 * WayTrial::kSamples);
}

// Each expert that several columns share has a turn; one that has a single column has none.
TEST_F(MatmulWaysTest, ExpertsTakeTurns) {
  table_.moe_matmul = [](const auto&, const auto&, const auto*, const auto&, const auto*,
                         const auto&, cpu_kernels::Range, const cpu_kernels::Tuning& tuning) {
    for (int expert = 0; expert < 3; ++expert) {
      const Way way = tuning.experts->begin(tuning.experts->self, kColumns);
      ++seen[way];
      const auto begin = std::chrono::steady_clock::now();
      const std::chrono::microseconds least(way == slow ? 50 : 1);
      while (std::chrono::steady_clock::now() - begin < least) {
      }
      tuning.experts->end(tuning.experts->self);
    }
  };
  call_.in[2] = &x_;
  slow = Way::kDirect;
  const auto run = [&] { FindOpFunction(TRINE_OP_MOE_MATMUL)(call_, {0, 1}); };
  is_warm_ = false;
  run();
  EXPECT_EQ(seen[Way::kUsual], 3u);
  is_warm_ = true;
  seen.clear();
  for (uint32_t i = 0; i < 2 * WayTrial::kSamples / 3; ++i) run();
  EXPECT_EQ(seen[Way::kDirect], WayTrial::kSamples);
  EXPECT_EQ(seen[Way::kTiles], WayTrial::kSamples);
  EXPECT_EQ(Chosen(), Way::kTiles);
  run();
  EXPECT_EQ(seen[Way::kTiles], WayTrial::kSamples + 3);
}

}  // namespace
}  // namespace trine::cpu
