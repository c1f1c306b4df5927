// Cases that run every shader at least once, for tests of executors.
#pragma once

#include <string>
#include <vector>

#include "kernels/vulkan/runs/dispatch.h"
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

// `int_dot`: with the shaders that need integer dot products.
std::vector<ExecutorCase> ExecutorCases(bool int_dot);

}  // namespace trine::vulkan
