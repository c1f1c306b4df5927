#include "backends/cpu/op_run.h"

#include <gtest/gtest.h>

namespace trine::cpu {
namespace {

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

}  // namespace
}  // namespace trine::cpu
