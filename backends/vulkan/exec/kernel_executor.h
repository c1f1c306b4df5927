// Puts a kernel into a command buffer: binds its pipeline and buffers, pushes its constants and
// dispatches its workgroups. The recorder adds barriers and submissions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/exec/pipelines.h"
#include "backends/vulkan/memory/memory.h"

namespace trine::vulkan {

enum class Access : uint32_t { kRead = 1, kWrite = 2, kReadWrite = 3 };
inline bool Reads(Access access) { return (static_cast<uint32_t>(access) & 1) != 0; }
inline bool Writes(Access access) { return (static_cast<uint32_t>(access) & 2) != 0; }

// Bytes that a kernel uses, and how it uses them.
struct Binding {
  BufferRange range;
  Access access = Access::kRead;
};

// A kernel and the buffers that it works on.
struct Dispatch {
  const Shader* shader = nullptr;
  std::vector<uint32_t> constants;          // specialisation constants by id; see Pipelines::Get
  std::span<const std::byte> push;          // exactly the shader's push constants
  std::vector<Binding> buffers;             // by binding; accesses as the shader declares them
  std::array<uint32_t, 3> groups{1, 1, 1};  // workgroups; a 0 among them means that none is run
  uint32_t subgroup_size = 0;               // 0: the driver's choice; see Pipelines::Get
  uint64_t operations = 0;                  // approximate number of additions and multiplications
  const char* label = nullptr;  // for profiles, must stay valid; null: the shader's name
};

// Owns the objects that bind kernels to buffers. Each recording has its own executor and keeps it
// for as long as the recording may run. One thread at a time.
class KernelExecutor {
 public:
  virtual ~KernelExecutor() = default;

  // Directs the next Record calls to `commands`, in which nothing is bound yet.
  virtual void Begin(VkCommandBuffer commands) = 0;

  // Makes the objects that the dispatch needs and records nothing. The recorder has checked the
  // dispatch.
  virtual absl::Status Prepare(const Dispatch& dispatch) = 0;

  // Records a dispatch. It must be the one that was prepared last.
  virtual void Record(const Dispatch& dispatch) = 0;
};

// Makes an executor of the kind, which the build must have. `device` and `pipelines` must outlive
// it.
std::unique_ptr<KernelExecutor> MakeKernelExecutor(Executor which, Device& device,
                                                   Pipelines& pipelines);

// Exists only in builds with Kompute: ExecutorIsBuilt(Executor::kKompute).
std::unique_ptr<KernelExecutor> MakeKomputeExecutor(Device& device, Pipelines& pipelines);

}  // namespace trine::vulkan
