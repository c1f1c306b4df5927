// How a kernel comes into a command buffer: its pipeline and buffers bound, its constants pushed,
// its workgroups dispatched. What goes around it, barriers and submissions, is the recorder's.
#ifndef TRINE_BACKENDS_VULKAN_KERNEL_EXECUTOR_H_
#define TRINE_BACKENDS_VULKAN_KERNEL_EXECUTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/hazard_tracker.h"
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/tuning.h"

namespace trine::vulkan {

// A kernel and what it works on.
struct Dispatch {
  const Shader* shader = nullptr;
  std::vector<uint32_t> constants;          // specialisation constants by id; see Pipelines::Get
  std::span<const std::byte> push;          // exactly the shader's push constants
  std::vector<Binding> buffers;             // by binding; accesses as the shader declares them
  std::array<uint32_t, 3> groups{1, 1, 1};  // workgroups; a zero: nothing to do
  // Three uint32_t in a buffer instead, read when the work runs. The shader must leave alone what
  // is beyond the work; the device's limits are the caller's.
  std::optional<BufferRange> groups_from;
  uint32_t subgroup_size = 0;   // 0: the driver's choice; see Pipelines::Get
  uint64_t operations = 0;      // about how many additions and multiplications
  const char* label = nullptr;  // in profiles, valid for ever; null: the shader's name
};

// Each recording has its own and keeps it for as long as it may run: what kernels are bound with
// belongs to it. One thread at a time.
class KernelExecutor {
 public:
  virtual ~KernelExecutor() = default;

  // What is recorded from now on goes into `commands`, in which nothing is bound yet.
  virtual void Begin(VkCommandBuffer commands) = 0;

  // Makes what a kernel needs and records nothing. The recorder has looked at the dispatch.
  virtual absl::Status Prepare(const Dispatch& dispatch) = 0;

  // Records what was prepared last; the same dispatch.
  virtual void Record(const Dispatch& dispatch) = 0;
};

// `device` and `pipelines` outlive it.
std::unique_ptr<KernelExecutor> MakeKernelExecutor(Executor which, Device& device,
                                                   Pipelines& pipelines);

// In a build that has it: ExecutorIsBuilt(Executor::kKompute).
std::unique_ptr<KernelExecutor> MakeKomputeExecutor(Device& device, Pipelines& pipelines);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_KERNEL_EXECUTOR_H_
