// Runs of every shader, each at least once, for tests of how kernels come to run.
#ifndef TRINE_TESTS_VULKAN_EXECUTOR_CASES_H_
#define TRINE_TESTS_VULKAN_EXECUTOR_CASES_H_

#include <string>
#include <vector>

#include "kernels/vulkan/dispatch.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {

struct ExecutorCase {
  struct Operand {
    TensorView view;
    Bytes bytes;
  };
  std::string name;
  std::vector<KernelRun> runs;
  std::vector<Operand> operands;
  uint64_t scratch_bytes = 0;
};

// `int_dot`: those that need integer dot products too.
std::vector<ExecutorCase> ExecutorCases(bool int_dot);

}  // namespace trine::vulkan

#endif  // TRINE_TESTS_VULKAN_EXECUTOR_CASES_H_
