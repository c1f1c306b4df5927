// Graphs as plans of a device, held against the reference: what the self-test's cases run on.
#ifndef TRINE_BACKENDS_COMMON_SELF_TEST_RUNNER_H_
#define TRINE_BACKENDS_COMMON_SELF_TEST_RUNNER_H_

#include <vector>

#include "backends/common/self_test.h"
#include "backends/common/self_test_graph.h"
#include "trine/backend.h"

namespace trine::backends {

class SelfTestRunner {
 public:
  SelfTestRunner(const trine_plugin& table, trine_device* device)
      : table_(table), device_(device) {}

  // The first failure stays, and nothing is run after it.
  void Check(const TestGraph& graph);

  const SelfTestResult& result() const { return result_; }

 private:
  // Leaves what it wrote in the graph's tensors.
  trine_status Run(const TestGraph& graph, trine_error* err);
  trine_status RunPlan(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                       trine_error* err);

  const trine_plugin& table_;
  trine_device* device_;
  SelfTestResult result_;
};

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_SELF_TEST_RUNNER_H_
