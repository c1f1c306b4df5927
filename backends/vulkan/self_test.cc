#include "backends/vulkan/self_test.h"

#include "backends/vulkan/self_test_cases.h"
#include "backends/vulkan/self_test_runner.h"

namespace trine::vulkan {

SelfTestResult RunSelfTest(trine_device* device) {
  SelfTestRunner runner(device);
  AddSelfTestCases([&](const TestGraph& graph) { runner.Check(graph); });
  return runner.result();
}

}  // namespace trine::vulkan
