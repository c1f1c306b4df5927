// The backend, its devices and its table, as the ABI shows them. A plan is a checked graph bound to
// memory, captured for the parameters of a run and replayed as long as they stay the same.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/common/gpu_plugin.h"
#include "backends/hip/found_devices.h"
#include "backends/hip/gpu_device.h"
#include "backends/hip/options.h"
#include "backends/hip/peers.h"
#include "backends/hip/recording.h"
#include "backends/hip/submissions.h"
#include "trine/backend_sdk.h"

// The ABI's opaque handles.
struct trine_backend {
  const trine_host* host = nullptr;
  trine::hip::Options options;
  trine::hip::FoundDevices found;
  std::unique_ptr<trine::hip::PeerLinks> peers;

  std::mutex mutex;
  // For each device: "" or the self-test's failure; nullopt until the test has been run.
  std::vector<std::optional<std::string>> verdicts;
  // For each device: which memory it was found to import (TRINE_IMPORTS_*), and why not the rest.
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
  std::unique_ptr<trine::hip::Submissions> submissions;  // destroyed before the GPU is
  std::weak_ptr<trine::hip::WeightStages> stages;        // shared by plans if they are large enough

  // Returns OK, or UNAVAILABLE if the device is lost. Every call reports the loss.
  trine_status Health(trine_error* err) const {
    const absl::Status status = gpu->Health();
    if (status.ok()) return TRINE_OK;
    return trine::sdk::Fail(err, TRINE_UNAVAILABLE, std::string(status.message()));
  }

  // Returns the most bytes of a product's weights in a window. A stage also has room for a bias.
  uint64_t WindowBytes() const { return backend->options.stage_bytes / 16 * 15; }
  // Returns stages of at least `bytes` each, or RESOURCE_EXHAUSTED.
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

namespace trine::hip {

using backends::Answer;
using backends::Fail;

// Submits work. If `sync` has no signals, waits until its timeline points are reached, calls `run`
// and returns run's status. If it has signals, returns at once; the device's thread calls `start`
// when the points are reached. `start` puts the work on the stream or does it, and must keep alive
// everything that it needs.
trine_status Submit(trine_device* device, const trine_sync& sync,
                    const std::function<absl::Status()>& run, std::function<absl::Status()> start,
                    trine_error* err);

// Opens the backend. Returns INVALID_ARGUMENT for invalid options. Without devices it succeeds and
// shows none.
absl::StatusOr<std::unique_ptr<trine_backend>> MakeBackend(const trine_host* host,
                                                           const std::string& options);

uint32_t CountDevices(const trine_backend& backend);

trine_device_info DescribeDevice(trine_backend* backend, uint32_t index);

absl::StatusOr<std::unique_ptr<trine_device>> MakeDevice(trine_backend* backend, uint32_t index);

// The address and the size of imported memory are multiples of this. Weights in imported memory are
// brought to the device through stages at each run (docs/hip.md).
inline constexpr uint32_t kImportAlignment = 64;

// The functions of the plugin's table.
backends::Call<&trine_plugin::buffer_alloc> BufferAlloc;
backends::Call<&trine_plugin::buffer_import> BufferImport;
backends::Call<&trine_plugin::buffer_free> BufferFree;
backends::Call<&trine_plugin::buffer_write> BufferWrite;
backends::Call<&trine_plugin::buffer_read> BufferRead;
backends::Call<&trine_plugin::buffer_host_ptr> BufferHostPtr;
backends::Call<&trine_plugin::copy_run> BufferCopy;
backends::Call<&trine_plugin::op_query> OpQuery;
backends::Call<&trine_plugin::plan_query> PlanQuery;
backends::Call<&trine_plugin::plan_create> PlanCreate;
backends::Call<&trine_plugin::plan_run> PlanRun;
backends::Call<&trine_plugin::plan_destroy> PlanDestroy;
backends::Call<&trine_plugin::layout_list> LayoutList;
backends::Call<&trine_plugin::layout_convert> LayoutConvert;

const trine_plugin& Table();

}  // namespace trine::hip
