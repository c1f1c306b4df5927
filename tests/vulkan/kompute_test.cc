// Runs every shader with both executors, native and Kompute, and compares the bits. Other tests
// check that they are right.
#include <utility>
#include <vector>

#include "tests/vulkan/executor_cases.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

class KomputeTest : public ShaderTest {
 protected:
  void SetUp() override {
    if (!ExecutorIsBuilt(Executor::kKompute)) GTEST_SKIP() << "a build without Kompute";
    ShaderTest::SetUp();
  }

  // `bytes`: receives the operands after the run.
  absl::Status Run(const ExecutorCase& c, Executor executor, std::vector<Bytes>* bytes) {
    for (const ExecutorCase::Operand& operand : c.operands) bytes->push_back(operand.bytes);
    std::vector<Bytes*> pointers;
    for (Bytes& operand : *bytes) pointers.push_back(&operand);
    runner_->tuning().executor = executor;
    const absl::Status status = runner_->Run(c.runs, pointers, c.scratch_bytes);
    runner_->tuning().executor = Executor::kNative;
    return status;
  }
};

TEST_F(KomputeTest, EqualsTheNativeExecutor) {
  for (const ExecutorCase& c : ExecutorCases(runner_->device().caps().int_dot)) {
    std::vector<Bytes> native, kompute;
    for (auto [executor, bytes] :
         {std::pair(Executor::kNative, &native), std::pair(Executor::kKompute, &kompute)}) {
      const absl::Status status = Run(c, executor, bytes);
      EXPECT_TRUE(status.ok()) << c.name << ": " << status;
    }
    bool written = false;
    for (size_t i = 0; i < native.size(); ++i) {
      EXPECT_EQ(Difference(kompute[i], native[i]), "") << c.name << ", operand " << i;
      written |= native[i] != c.operands[i].bytes;
    }
    EXPECT_TRUE(written) << c.name;
  }
}

TEST_F(KomputeTest, RefusesWhatTheDeviceCantDo) {
  ExecutorCase c = ExecutorCases(false).front();
  c.runs.front().constants[0] = 1u << 20;
  std::vector<Bytes> bytes;
  const absl::Status status = Run(c, Executor::kKompute, &bytes);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace trine::vulkan
