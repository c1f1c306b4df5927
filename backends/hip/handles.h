// The ABI's opaque handles, as this plugin has them.
#ifndef TRINE_BACKENDS_HIP_HANDLES_H_
#define TRINE_BACKENDS_HIP_HANDLES_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/hip/found_devices.h"
#include "backends/hip/gpu_device.h"
#include "backends/hip/options.h"
#include "backends/hip/peers.h"
#include "backends/hip/submissions.h"
#include "backends/hip/weight_stages.h"
#include "trine/backend_sdk.h"

struct trine_backend {
  const trine_host* host = nullptr;
  trine::hip::Options options;
  trine::hip::FoundDevices found;
  std::unique_ptr<trine::hip::PeerLinks> peers;

  std::mutex mutex;
  // By device: "" or what its self-test found wrong, once it was run.
  std::vector<std::optional<std::string>> verdicts;
  // By device: what it was seen to import (TRINE_IMPORTS_*), and what it refused.
  struct Imports {
    uint32_t flags = 0;
    std::string refusal;
  };
  std::vector<Imports> imports;
};

struct trine_device {
  trine_backend* backend = nullptr;
  std::unique_ptr<trine::hip::GpuDevice> gpu;
  trine::hip::DeviceShape shape;
  bool exact = false;
  std::unique_ptr<trine::hip::Submissions> submissions;  // gone before the GPU is
  std::weak_ptr<trine::hip::WeightStages> stages;        // of all plans that need no larger ones

  // OK, or UNAVAILABLE: a lost device says so in every call.
  trine_status Health(trine_error* err) const {
    const absl::Status status = gpu->Health();
    if (status.ok()) return TRINE_OK;
    return trine::sdk::Fail(err, TRINE_UNAVAILABLE, std::string(status.message()));
  }

  // Of a product's weights, so much that a stage also has room for a bias.
  uint64_t WindowBytes() const { return backend->options.stage_bytes / 16 * 15; }
  // Stages of at least so many bytes each, or RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<trine::hip::WeightStages>> StagesFor(uint64_t bytes);

  uint32_t Support() const { return exact ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST; }
};

struct trine_buffer {
  trine_device* device = nullptr;
  trine::hip::GpuMemory memory;
  bool read_only = false;  // pages of a file

  bool InRange(uint64_t offset, uint64_t n) const {
    return offset <= memory.bytes() && n <= memory.bytes() - offset;
  }
};

struct trine_timeline : trine::sdk::Timeline {
  using Timeline::Timeline;
};

namespace trine::hip {

using Timelines = sdk::TimelineCalls<trine_timeline>;

using sdk::Fail;

// The numbers are the same.
inline trine_status Fail(trine_error* err, const absl::Status& status) {
  return sdk::Fail(err, static_cast<trine_status>(status.code()), std::string(status.message()));
}

// Does `run` when the waits are reached, and returns; without signals, when it is done. With
// signals `start`, on the device's thread, puts it on the stream or does it: what it needs it
// keeps.
trine_status Submit(trine_device* device, const trine_sync& sync,
                    const std::function<absl::Status()>& run, std::function<absl::Status()> start,
                    trine_error* err);

inline trine_status Answer(trine_error* err, const absl::Status& status) {
  return status.ok() ? TRINE_OK : Fail(err, status);
}

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_HANDLES_H_
