// Graphs as plans of a device, held against the reference: what the self-test's cases run on.
#ifndef TRINE_BACKENDS_VULKAN_SELF_TEST_RUNNER_H_
#define TRINE_BACKENDS_VULKAN_SELF_TEST_RUNNER_H_

#include <vector>

#include "backends/vulkan/self_test.h"
#include "backends/vulkan/self_test_graph.h"
#include "trine/backend.h"

namespace trine::vulkan {

class SelfTestRunner {
 public:
  explicit SelfTestRunner(trine_device* device) : device_(device) {}

  // The first failure stays, and nothing is run after it.
  void Check(const TestGraph& graph);

  const SelfTestResult& result() const { return result_; }

 private:
  // Leaves what it wrote in the graph's tensors.
  trine_status Run(const TestGraph& graph, trine_error* err);
  trine_status RunPlan(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                       trine_error* err);

  trine_device* device_;
  SelfTestResult result_;
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_SELF_TEST_RUNNER_H_
