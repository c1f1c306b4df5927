// The plugin as its host sees it, over a FakeDriver: its table, a host that keeps the plugin's
// messages, and a device with a small plan.
#pragma once

#include <string>
#include <vector>

#include "backends/vulkan/testing/fake_driver.h"
#include "tests/abi/graph_builder.h"
#include "trine/backend.h"

namespace trine::vulkan::testing {

const trine_plugin& Table();

// Opens backends over the current FakeDriver from here on. They keep no files and remember nothing
// of earlier ones.
void UseFakeDriver();

class FakeHost {
 public:
  FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  const trine_host* host() const { return &host_; }

  std::vector<std::string> logs;
  std::vector<std::string> op_times;  // names
  uint32_t profiling = 0;

 private:
  trine_host host_{};
};

// Allocates one buffer.
trine_status Alloc(trine_device* device, uint64_t bytes, trine_buffer** out, trine_error* err);

// A plan of one op over buffers of its own: y = w x, of Q8_0 weights, for 1 to 64 columns.
class PlanOnDevice {
 public:
  explicit PlanOnDevice(trine_device* device);
  ~PlanOnDevice();
  PlanOnDevice(const PlanOnDevice&) = delete;
  PlanOnDevice& operator=(const PlanOnDevice&) = delete;

  // Call in this order. Each may be called again after a failure.
  trine_status MakeBuffers(trine_error* err);
  trine_status Fill(trine_error* err);
  trine_status Query(trine_error* err);
  trine_status Create(trine_error* err);
  trine_status Run(int64_t columns, trine_error* err, const trine_sync& sync = {});
  trine_status Read(trine_error* err);
  trine_status CopyInside(trine_error* err);

  trine_graph graph() const { return builder.Abi(); }
  // Returns the description that Create uses, for a test to change.
  trine_plan_desc Desc();

  sdk::GraphBuilder builder;
  std::vector<trine_buffer*> buffers;  // by slot
  std::vector<trine_binding> bindings;
  trine_buffer* scratch = nullptr;
  trine_plan* plan = nullptr;

 private:
  trine_device* device_;
  trine_graph graph_{};
  trine_plan_info info_{};
};

}  // namespace trine::vulkan::testing
