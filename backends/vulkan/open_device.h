// Opens a device with all objects that its plans and buffers need, and parses the options for its
// use.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/exec/pipelines.h"
#include "backends/vulkan/exec/queue.h"
#include "backends/vulkan/exec/transfer.h"
#include "backends/vulkan/memory/memory.h"
#include "kernels/vulkan/runs/products.h"

namespace trine::vulkan {

// The memory of the host that is used in place, if the driver accepts it.
enum class ImportLimit { kAll, kMemory, kNone };  // kMemory: all but mapped files

// The plugin options and TRINE_VULKAN_TUNING, parsed: "timeout_ms=500;int_dot=0".
struct DeviceOptions {
  // Work that takes longer is taken as endless, and the device is abandoned.
  std::chrono::milliseconds timeout{600'000};
  ImportLimit import = ImportLimit::kAll;                   // "import=all", "memory" or "none"
  std::vector<std::pair<std::string, std::string>> tuning;  // for OverrideTuning
};

// How kernels use a device under given options.
struct ChosenTuning {
  Tuning ops;
  ProductTuning products;
};
// Returns INVALID_ARGUMENT for a tuning that the device does not have.
absl::StatusOr<ChosenTuning> TuningFor(const DeviceCaps& caps, const DeviceOptions& options);

// Parses "key=value;key=value". Returns INVALID_ARGUMENT for another form, an unknown name or an
// impossible value. Does not check that a device can have the tuning: TuningFor does.
absl::StatusOr<DeviceOptions> ParseDeviceOptions(const std::string& text);

// Returns the alignment of memory that the device may import under `options`; 0: it imports none.
uint64_t ImportAlignment(const DeviceCaps& caps, const DeviceOptions& options);

class OpenDevice {
 public:
  // `instance` must outlive the device.
  static absl::StatusOr<std::unique_ptr<OpenDevice>> Create(const Instance& instance,
                                                            const FoundDevice& found,
                                                            const DeviceOptions& options);
  ~OpenDevice();

  const DeviceCaps& caps() const { return device->caps(); }

  // Returns the alignment of memory that may be imported; 0: none may.
  uint64_t ImportAlignment() const;
  // Imports memory as Memory::Import does. `read_only` means that its pages can't be written.
  // Returns UNIMPLEMENTED if the options forbid it, or if the device has its own memory.
  absl::StatusOr<Allocation> Import(void* host, uint64_t bytes, bool read_only);

  // Submits a recording and waits for it, at most for `timeout` or else the options' timeout.
  // Returns UNAVAILABLE if the device is lost, or was abandoned because the time was over.
  absl::Status RunAndWait(const Recording& recording) {
    return RunAndWait(recording, options.timeout);
  }
  absl::Status RunAndWait(const Recording& recording, std::chrono::milliseconds timeout);
  // Work that was submitted and not waited for.
  struct Submitted {
    uint64_t point = 0;  // of the queue
    std::chrono::steady_clock::time_point begin;
    std::chrono::milliseconds timeout{0};  // counts from the beginning
  };
  absl::StatusOr<Submitted> Submit(const Recording& recording, std::chrono::milliseconds timeout);
  // Waits for the work for at most `wait_ns`. Returns DEADLINE_EXCEEDED if the work goes on, and
  // UNAVAILABLE if the device is lost, or was abandoned because the work's own time was over.
  absl::Status Wait(const Submitted& work, uint64_t wait_ns);

  DeviceOptions options;
  Tuning tuning;
  ProductTuning products;
  // Each of these depends on the ones before it.
  std::unique_ptr<Device> device;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Pipelines> pipelines;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Transfer> transfer;

 private:
  // Abandons the device unless a wait for work, for all of the time that it may take, has ended.
  absl::Status AfterWait(const absl::Status& status, std::chrono::milliseconds timeout);
};

}  // namespace trine::vulkan
