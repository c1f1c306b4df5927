// Checks the level amx on any processor: its sources, with AMX's instructions emulated.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/cpu/levels/self_test.h"

namespace trine::cpu_kernels {

namespace emulated_amx {
extern const KernelTable kTable;
}

namespace {

TEST(EmulatedAmxTest, EqualsTheReference) {
  CheckReport report;
  const Extent extent = std::getenv("TRINE_LONG") != nullptr ? Extent::kAll : Extent::kSome;
  CheckActivations(emulated_amx::kTable, &report);
  CheckProducts(emulated_amx::kTable, extent, &report);
  EXPECT_EQ(emulated_amx::kTable.matmul_order, ActivationOrder::kRecords);
  EXPECT_GT(report.cases(), 10000);
  EXPECT_EQ(report.mismatches(), 0);
  for (const std::string& message : report.messages()) ADD_FAILURE() << message;
}

TEST(EmulatedAmxTest, PassesTheSelfTest) { EXPECT_EQ(RunSelfTest(emulated_amx::kTable), ""); }

}  // namespace
}  // namespace trine::cpu_kernels
