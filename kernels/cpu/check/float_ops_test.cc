#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/levels/host_features.h"
#include "kernels/cpu/levels/levels.h"

namespace trine::cpu_kernels {
namespace {

bool Long() { return std::getenv("TRINE_LONG") != nullptr; }

class FloatOpsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    level_ = FindLevel(GetParam());
    if (!CanRun(*level_, HostHas)) GTEST_SKIP() << "this processor can't run level " << GetParam();
  }
  const KernelTable& table() const { return *level_->table; }

  void ExpectNoMismatch(int64_t least_cases) const {
    EXPECT_GE(report_.cases(), least_cases);
    EXPECT_EQ(report_.mismatches(), 0);
    for (const std::string& message : report_.messages()) ADD_FAILURE() << message;
  }

  const Level* level_ = nullptr;
  CheckReport report_;
};

TEST_P(FloatOpsTest, EqualTheReference) {
  CheckFloatOps(table(), &report_);
  ExpectNoMismatch(5000);
}

TEST_P(FloatOpsTest, AttentionEqualsTheReference) {
  const int cases = Long() ? 400 : 60;
  CheckAttention(table(), Extent::kAll, cases, &report_);
  ExpectNoMismatch(4 * cases);
}

TEST_P(FloatOpsTest, FunctionsEqualTheReference) {
  CheckMath(table(), Long() ? 997 : 9973, &report_);
  ExpectNoMismatch(500000);
}

// Lets the checks above compare f16 with denormals flushed.
TEST_P(FloatOpsTest, ConversionsOfHalvesIgnoreFlushing) { EXPECT_FALSE(F16HeedsFlushing(table())); }

std::vector<const char*> OwnLevels() {
  std::vector<const char*> names;
  for (const Level& level : Levels()) {
    if (!level.on_request_only) names.push_back(level.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Levels, FloatOpsTest, testing::ValuesIn(OwnLevels()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace trine::cpu_kernels
