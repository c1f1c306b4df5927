// The backend, its devices and its table, as the ABI shows them. A plan is a checked graph bound to
// memory, captured for the parameters of a run and replayed as long as they stay the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
#include "backends/hip/io_shadows.h"
#include "backends/hip/op_launches.h"
#include "backends/hip/options.h"
#include "backends/hip/peers.h"
#include "backends/hip/recording.h"
#include "backends/hip/submissions.h"
#include "backends/hip/weight_windows.h"
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
  std::atomic<bool> told_of_pinning = false;  // the log says why pages of files are not pinned

  // Returns OK, or UNAVAILABLE if the device is lost.
  absl::Status Health() const { return gpu->Health(); }
  static constexpr uint64_t Alignment() { return trine::hip::kAlignment; }

  // Returns the most bytes of a product's weights in a window. A stage also has room for a bias.
  uint64_t WindowBytes() const { return backend->options.stage_bytes / 16 * 15; }
  // Returns stages of at least `bytes` each, or RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<trine::hip::WeightStages>> StagesFor(uint64_t bytes);

  absl::StatusOr<trine::hip::GpuMemory> Allocate(uint64_t bytes, bool io);
  absl::StatusOr<trine::hip::GpuMemory> Import(void* host, uint64_t bytes, bool read_only);
  absl::Status Write(trine_buffer& to, uint64_t offset, const void* from, uint64_t bytes);
  absl::Status Read(trine_buffer& from, uint64_t offset, void* to, uint64_t bytes);
  // Returns whether the device can copy between the buffers (null: memory of the host). One may be
  // of another device of the same backend, if the other is of this device.
  bool CanCopy(const trine_buffer* from, const trine_buffer* to) const;
  trine_status RunCopies(std::vector<trine_copy> copies, const trine_sync& sync, trine_error* err);

  // Returns "" or why the device can't run an op.
  std::string WhyNotOp(const trine::sdk::Graph& graph, size_t op) const {
    return trine::hip::WhyNotOp(graph, op);
  }
  // Returns the bytes of scratch that plans of the graph need after the TEMP slots: for launches,
  // then for the shadows of IO slots.
  uint64_t OwnScratch(const trine::sdk::Graph& graph) const;
};

struct trine_buffer : trine::backends::BufferOf<trine_device, trine::hip::GpuMemory> {
  std::byte* At(uint64_t offset) const { return memory.data() + offset; }
  void* HostPtr() const { return memory.of_host() ? memory.data() : nullptr; }
};

struct trine_plan {
  trine_device* device = nullptr;
  trine::sdk::Graph graph;
  trine::sdk::PlanPlaces<std::byte*> places;
  std::vector<trine::hip::ConstantPlace> constants;  // by slot
  trine::hip::WindowedGraph windowed;                // the graph that is run
  std::shared_ptr<trine::hip::WeightStages> stages;  // null: no weights are streamed
  std::vector<trine::hip::OpGroup> groups;           // groups of the windowed graph's ops
  trine::hip::LaunchScratch scratch;
  std::optional<trine::hip::IoShadows> shadows;
  std::byte* scratch_place = nullptr;  // after the TEMP slots

  std::mutex mutex;  // guards the recordings: the device's thread makes some
  trine::backends::KeptRecordings<trine::hip::Recording> recordings;

  // Makes the graph that is run, with the weights where the bindings have them. Returns the bytes
  // that runs need in the scratch after the TEMP slots.
  absl::StatusOr<uint64_t> Prepare(const trine_plan_desc& desc);
  trine_status Run(const trine_run_args& args, trine_error* err);
};

namespace trine::hip {

// The thread that starts work that has signals: the device's own, or the caller's if the work need
// not wait. Work that is more than a few commands for the device is none for the caller.
enum class Starter { kDevice, kCaller };

// Submits work. If `sync` has no signals, waits until its timeline points are reached, calls `run`
// and returns run's status. If it has signals, `start` is called when the points are reached, and
// the caller goes on meanwhile. `start` puts the work on the stream or, on the device's thread, may
// do it; it must keep alive everything that it needs.
trine_status Submit(trine_device* device, const trine_sync& sync,
                    const std::function<absl::Status()>& run, std::function<absl::Status()> start,
                    trine_error* err, Starter starter = Starter::kDevice);

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

const trine_plugin& Table();

}  // namespace trine::hip
