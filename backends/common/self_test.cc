#include "backends/common/self_test.h"

#include "backends/common/self_test_cases.h"
#include "backends/common/self_test_runner.h"

namespace trine::backends {

SelfTestResult RunSelfTest(const trine_plugin& table, trine_device* device,
                           const std::function<void(const std::string& name)>& begins) {
  SelfTestRunner runner(table, device);
  AddSelfTestCases([&](const TestGraph& graph) {
    begins(graph.name());
    runner.Check(graph);
  });
  return runner.result();
}

}  // namespace trine::backends
