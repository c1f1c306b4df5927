// A device with everything that its plans and buffers need, and how it is to be used.
#ifndef TRINE_BACKENDS_VULKAN_OPEN_DEVICE_H_
#define TRINE_BACKENDS_VULKAN_OPEN_DEVICE_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/memory.h"
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/queue.h"
#include "backends/vulkan/transfer.h"
#include "backends/vulkan/tuning.h"
#include "kernels/vulkan/products.h"

namespace trine::vulkan {

// Which of the host's memory is used in place, where the driver would take it.
enum class ImportLimit { kAll, kMemory, kNone };  // kMemory: no mapped files

// What plugin options and TRINE_VULKAN_TUNING say: "timeout_ms=500;int_dot=0".
struct DeviceOptions {
  // Work that takes longer than this will never end: the device is given up.
  std::chrono::milliseconds timeout{600'000};
  ImportLimit import = ImportLimit::kAll;                   // "import=all", "memory" or "none"
  std::vector<std::pair<std::string, std::string>> tuning;  // for OverrideTuning
};

// How kernels use a device that is used so.
struct ChosenTuning {
  Tuning ops;
  ProductTuning products;
};
// INVALID_ARGUMENT for a tuning that the device does not have.
absl::StatusOr<ChosenTuning> TuningFor(const DeviceCaps& caps, const DeviceOptions& options);

// INVALID_ARGUMENT for what is no "key=value;key=value", for a name that is none and for a value
// that can't be. Whether a device can be tuned that way is seen when it is opened.
absl::StatusOr<DeviceOptions> ParseDeviceOptions(const std::string& text);

// Of what a device that is used so may import; 0: nothing.
uint64_t ImportAlignment(const DeviceCaps& caps, const DeviceOptions& options);

class OpenDevice {
 public:
  // `instance` outlives it.
  static absl::StatusOr<std::unique_ptr<OpenDevice>> Create(const Instance& instance,
                                                            const FoundDevice& found,
                                                            const DeviceOptions& options);
  ~OpenDevice();

  const DeviceCaps& caps() const { return device->caps(); }

  // Of what may be imported; 0: nothing may.
  uint64_t ImportAlignment() const;
  // Memory::Import, where there is an alignment and within the options; else UNIMPLEMENTED.
  // `read_only`: its pages can't be written.
  absl::StatusOr<Allocation> Import(void* host, uint64_t bytes, bool read_only);

  // Submits and waits. UNAVAILABLE when the device is lost, or given up because the time is over:
  // the options' unless another is given.
  absl::Status RunAndWait(const Recording& recording) {
    return RunAndWait(recording, options.timeout);
  }
  absl::Status RunAndWait(const Recording& recording, std::chrono::milliseconds timeout);

  DeviceOptions options;
  Tuning tuning;
  ProductTuning products;
  // In the order in which they need each other.
  std::unique_ptr<Device> device;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Pipelines> pipelines;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Transfer> transfer;
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_OPEN_DEVICE_H_
