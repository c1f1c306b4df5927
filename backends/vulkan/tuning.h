// How the ops use a device: a pure function of what it can do. Nothing here may change a result,
// only how fast it comes.
#ifndef TRINE_BACKENDS_VULKAN_TUNING_H_
#define TRINE_BACKENDS_VULKAN_TUNING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/device_caps.h"

namespace trine::vulkan {

// What puts kernels into command buffers: kernel_executor.h.
enum class Executor { kNative, kKompute };
// Kompute's is there where the build found it.
bool ExecutorIsBuilt(Executor executor);

struct Tuning {
  Executor executor = Executor::kNative;
  bool int_dot = false;        // shaders with OpSDot; else the ones that multiply bytes apart
  uint32_t subgroup_size = 0;  // to be required of GEMVs; 0: the driver's choice

  bool fuse = true;  // ops that can be one dispatch are

  uint32_t elementwise_workgroup = 256;
  uint32_t gemv_workgroup = 32;
  uint32_t gemv_rows = 1;  // rows of a workgroup, plain quantised types

  // A driver's watchdog ends what runs too long (seconds): a submission holds no more than this.
  uint64_t submit_operations = 0;  // multiplications and additions, as Dispatch::operations counts
  uint32_t submit_dispatches = 0;
};

Tuning ChooseTuning(const DeviceCaps& caps);

// Whether a tuning has this name.
bool HasTuning(const std::string& name);

// Sets one member by name, for options and for tests that force a path: "int_dot=0",
// "gemv_rows=4". INVALID_ARGUMENT for a name or a value that is none, and for a path that the
// device does not have.
absl::Status OverrideTuning(const DeviceCaps& caps, const std::string& name,
                            const std::string& value, Tuning* tuning);

// What memory is for.
enum class MemoryUse {
  kDevice,    // weights, caches, scratch: the device reads and writes it
  kUpload,    // the host writes, the device reads
  kReadback,  // the device writes, the host reads
};

// Memory types for a use, best first, out of `allowed` (bit i: type i). Host-visible ones are
// always coherent. Empty: there is none.
std::vector<uint32_t> MemoryTypesFor(const DeviceCaps& caps, MemoryUse use, uint32_t allowed);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_TUNING_H_
