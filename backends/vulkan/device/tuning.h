// Chooses how the ops use a device, as a pure function of what the device can do. Nothing here may
// change a result, only its speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/device/device_caps.h"
#include "kernels/vulkan/runs/products.h"

namespace trine::vulkan {

// Selects the KernelExecutor that records kernels into command buffers (kernel_executor.h).
enum class Executor { kNative, kKompute };
// Returns true for kNative, and for kKompute if the build found Kompute.
bool ExecutorIsBuilt(Executor executor);

// The choices for ops other than products; ProductTuning has the others.
struct Tuning {
  Executor executor = Executor::kNative;
  bool int_dot = false;        // use shaders with OpSDot; false: shaders that multiply single bytes
  uint32_t subgroup_size = 0;  // the size that GEMVs require; 0: the driver's choice

  bool fuse = true;  // run several ops as one dispatch if that is possible

  uint32_t elementwise_workgroup = 256;
  uint32_t gemv_workgroup = 32;
  uint32_t gemv_rows = 1;  // how many rows a workgroup computes, for plain quantised types

  // The most work of one submission, because a driver's watchdog ends work that runs for seconds.
  uint64_t submit_operations = 0;  // additions and multiplications, as Dispatch::operations counts
  uint32_t submit_dispatches = 0;
};

// Chooses the fastest settings that are known for such a device.
Tuning ChooseTuning(const DeviceCaps& caps);

// Returns whether there is a tuning of this name.
bool HasTuning(const std::string& name);

// Sets one member by name, for options and for tests that force a path: "int_dot=0", "gemv_rows=4".
// Returns INVALID_ARGUMENT for an unknown name, a bad value or a path that the device lacks.
absl::Status OverrideTuning(const DeviceCaps& caps, const std::string& name,
                            const std::string& value, Tuning* tuning);

// The purpose of memory.
enum class MemoryUse {
  kDevice,    // weights, caches, scratch: the device reads and writes it
  kUpload,    // the host writes, the device reads
  kReadback,  // the device writes, the host reads
};

// Returns the memory types for a use, best first, out of `allowed` (bit i stands for type i).
// Host-visible types in it are always coherent. Returns none if no type will do.
std::vector<uint32_t> MemoryTypesFor(const DeviceCaps& caps, MemoryUse use, uint32_t allowed);

// Chooses how the matrix products use a device.
ProductTuning ChooseProductTuning(const DeviceCaps& caps, const Tuning& tuning);

}  // namespace trine::vulkan
