// Checks, in every build and without a driver, that every shader has a case.
#include "tests/vulkan/executor_cases.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

TEST(ExecutorCasesTest, HaveEveryShader) {
  std::set<std::string> run;
  for (const ExecutorCase& c : ExecutorCases(true)) {
    for (const KernelRun& r : c.runs) run.insert(r.shader->name);
  }
  for (const Shader* shader : AllShaders()) EXPECT_TRUE(run.contains(shader->name)) << shader->name;
}

TEST(ExecutorCasesTest, FitTheirShaders) {
  for (const ExecutorCase& c : ExecutorCases(true)) {
    for (const KernelRun& r : c.runs) {
      EXPECT_EQ(r.operands.size(), r.shader->binding_count) << c.name;
      EXPECT_EQ(r.push.size() * 4, r.shader->push_bytes) << c.name;
      for (const uint32_t operand : r.operands) {
        EXPECT_TRUE(operand == kScratchOperand ? c.scratch_bytes != 0 : operand < c.operands.size())
            << c.name;
      }
    }
  }
}

}  // namespace
}  // namespace trine::vulkan
