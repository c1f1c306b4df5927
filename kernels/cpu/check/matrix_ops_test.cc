#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/levels/host_features.h"
#include "kernels/cpu/levels/levels.h"
#include "kernels/cpu/levels/self_test.h"

namespace trine::cpu_kernels {
namespace {

class MatrixOpsTest : public testing::TestWithParam<const char*> {};

TEST_P(MatrixOpsTest, EqualTheReference) {
  const Level& level = *FindLevel(GetParam());
  if (!CanRun(level, HostHas)) GTEST_SKIP() << "this processor can't run level " << level.name;
  CheckReport report;
  CheckActivations(*level.table, &report);
  CheckProducts(*level.table, Extent::kAll, &report);
  EXPECT_GT(report.cases(), 10000);
  EXPECT_EQ(report.mismatches(), 0);
  for (const std::string& message : report.messages()) ADD_FAILURE() << message;
}

TEST_P(MatrixOpsTest, PassTheSelfTest) {
  const Level& level = *FindLevel(GetParam());
  if (!CanRun(level, HostHas)) GTEST_SKIP() << "this processor can't run level " << level.name;
  EXPECT_EQ(RunSelfTest(*level.table), "");
}

TEST(SelfTest, NamesTheOperationThatDiffers) {
  KernelTable table = kReferenceLevel;
  EXPECT_EQ(RunSelfTest(table), "");
  table.glu = [](const View& gate, const View& up, const reference::GluParams& params,
                 const View& dst, Range rows) { reference::Glu(up, gate, params, dst, rows); };
  EXPECT_EQ(RunSelfTest(table), "glu");
  table.matmul = [](const View& w, const View& x, const ActivationChunk*, const View*,
                    const View& dst, Range features,
                    const Tuning&) { reference::Matmul(w, x, nullptr, dst, features); };
  EXPECT_EQ(RunSelfTest(table), "matmul of f32");
}

// Packs one row to a group, so that the reference's functions can read it.
TEST(SelfTest, NamesThePackedProductThatDiffers) {
  KernelTable table = kReferenceLevel;
  table.packed_shape = [](quant::Type type, int64_t k) {
    uint64_t bytes = 0;
    quant::RowBytes(type, k, &bytes);
    return PackedShape{1, static_cast<int64_t>(bytes)};
  };
  table.pack = [](const PlainRows& rows, std::byte* group) {
    uint64_t bytes = 0;
    quant::RowBytes(rows.type, rows.k, &bytes);
    std::copy_n(rows.data, bytes, group);
  };
  EXPECT_EQ(RunSelfTest(table), "");
  table.gather_rows = [](const View& src, const View& ids, const View& dst, Range rows) {
    if (!src.packed) reference::GatherRows(src, ids, dst, rows);
  };
  EXPECT_EQ(RunSelfTest(table), "gather_rows of packed f32");
  // Wrong with many columns only.
  table.matmul = [](const View& w, const View& x, const ActivationChunk*, const View* bias,
                    const View& dst, Range features, const Tuning&) {
    const bool wrong = w.packed && x.dims[1] > 16;
    reference::Matmul(w, x, wrong ? nullptr : bias, dst, features);
  };
  EXPECT_EQ(RunSelfTest(table), "matmul of packed f32");
}

TEST(SelfTest, TriesBothWays) {
  static Way wrong;
  KernelTable table = kReferenceLevel;
  table.matmul_has_ways = [](const View&, int64_t columns) { return columns > 1; };
  table.matmul = [](const View& w, const View& x, const ActivationChunk*, const View* bias,
                    const View& dst, Range features, const Tuning& tuning) {
    reference::Matmul(w, x, tuning.way == wrong ? nullptr : bias, dst, features);
  };
  for (const Way way : {Way::kDirect, Way::kTiles}) {
    wrong = way;
    EXPECT_EQ(RunSelfTest(table), "matmul of f32");
  }
}

std::vector<const char*> OwnLevels() {
  std::vector<const char*> names;
  for (const Level& level : Levels()) {
    if (!level.on_request_only) names.push_back(level.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Levels, MatrixOpsTest, testing::ValuesIn(OwnLevels()),
                         [](const auto& info) { return std::string(info.param); });

TEST(LevelsTest, AreFoundByName) {
  for (const Level& level : Levels()) EXPECT_EQ(FindLevel(level.name), &level);
  EXPECT_EQ(FindLevel("avx1024"), nullptr);
  EXPECT_EQ(FindLevel(""), nullptr);
}

TEST(LevelsTest, TheBestIsTheLastThatCanRun) {
  EXPECT_EQ(BestLevel([](const char*) { return false; }), nullptr);  // all need some feature
  const Level* best = BestLevel([](const char*) { return true; });
  ASSERT_NE(best, nullptr);
  EXPECT_FALSE(best->on_request_only);
  const Level& first = *FindLevel("baseline");
  const Level* only_first = BestLevel([&](const char* feature) {
    for (const char* required : first.required) {
      if (std::string_view(feature) == required) return true;
    }
    return false;
  });
  EXPECT_EQ(only_first, &first);
}

TEST(LevelsTest, ATableNamesItsLevel) {
  for (const Level& level : Levels()) {
    if (level.on_request_only) continue;
    EXPECT_STREQ(level.table->level, level.name);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels
