// The backend, its devices and its table, as the ABI shows them. A plan is a checked graph bound to
// memory; it is recorded for the parameters of a run and replayed as long as they stay the same.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/common/gpu_plugin.h"
#include "backends/vulkan/device/loader.h"
#include "backends/vulkan/exec/queue.h"
#include "backends/vulkan/exec/verdicts.h"
#include "backends/vulkan/open_device.h"
#include "backends/vulkan/ops/op_runs.h"
#include "trine/backend_sdk.h"

// The ABI's opaque handles.
struct trine_backend {
  const trine_host* host = nullptr;
  trine::vulkan::DeviceOptions options;
  std::unique_ptr<trine::vulkan::Instance> instance;  // null: there is no driver

  // The facts known about each device; guarded by `mutex`.
  struct Known {
    std::optional<trine::vulkan::Verdict> verdict;  // nullopt until it was first asked for
    int import_trials = 0;
  };
  std::mutex mutex;
  std::vector<Known> known;
};

struct trine_device {
  trine_backend* backend = nullptr;
  std::unique_ptr<trine::vulkan::OpenDevice> open;
  bool exact = false;
  trine::vulkan::ImportTrial imports;  // as known when the device was opened
  trine::vulkan::RunChoices choices;

  // Returns OK, or UNAVAILABLE if the device is lost.
  absl::Status Health() const { return open->device->Health(); }
  uint64_t Alignment() const { return BufferAlignment(*choices.caps); }

  absl::StatusOr<trine::vulkan::Allocation> Allocate(uint64_t bytes, bool io);
  absl::StatusOr<trine::vulkan::Allocation> Import(void* host, uint64_t bytes, bool read_only);
  absl::Status Write(trine_buffer& to, uint64_t offset, const void* from, uint64_t bytes);
  absl::Status Read(trine_buffer& from, uint64_t offset, void* to, uint64_t bytes);
  // Returns whether the device can copy between the buffers (null: memory of the host).
  bool CanCopy(const trine_buffer* from, const trine_buffer* to) const;
  trine_status RunCopies(const std::vector<trine_copy>& copies, const trine_sync& sync,
                         trine_error* err);

  // Returns "" or why the device can't run an op.
  std::string WhyNotOp(const trine::sdk::Graph& graph, size_t op) const {
    return trine::vulkan::WhyNotOp(choices, graph, op);
  }
  // Returns the bytes of scratch that plans of the graph need after the TEMP slots.
  uint64_t OwnScratch(const trine::sdk::Graph& graph) const {
    return trine::vulkan::ScratchOf(choices, graph).Bytes();
  }
};

namespace trine::vulkan {

// A position in a buffer.
struct Place {
  const trine_buffer* buffer = nullptr;
  uint64_t offset = 0;

  Place operator+(uint64_t bytes) const { return {buffer, offset + bytes}; }
  bool operator==(const Place&) const = default;
};

}  // namespace trine::vulkan

struct trine_buffer : trine::backends::BufferOf<trine_device, trine::vulkan::Allocation> {
  trine::vulkan::Place At(uint64_t offset) const { return {this, offset}; }
  // The host is slow at reading uncached memory, so callers should use buffer_read for it.
  void* HostPtr() const { return memory.host_cached() ? memory.host() : nullptr; }
};

struct trine_plan {
  trine_device* device = nullptr;
  trine::sdk::Graph graph;
  trine::sdk::PlanPlaces<trine::vulkan::Place> places;
  std::vector<trine::vulkan::OpGroup> groups;  // the graph's ops
  trine::vulkan::RunScratch scratch;
  trine::vulkan::Place scratch_place;  // after the TEMP slots
  trine::backends::KeptRecordings<trine::vulkan::Recording> recordings;
  trine::vulkan::OpenDevice::Submitted last;  // the run that was submitted last without a wait

  // Prepares runs. Returns the bytes that they need in the scratch after the TEMP slots.
  absl::StatusOr<uint64_t> Prepare(const trine_plan_desc& desc);
  trine_status Run(const trine_run_args& args, trine_error* err);
};

namespace trine::vulkan {

// Replaces the function by which MakeBackend finds Vulkan. It is LoadVulkan unless a test has its
// own driver. Must not be called while a backend is being opened.
using FindVulkan = absl::StatusOr<GlobalTable> (*)();
void FindVulkanBy(FindVulkan find);

// Opens the backend. Without a driver or a device it succeeds and shows no devices. `options` is as
// in open_device.h and overrides TRINE_VULKAN_TUNING, which has the same form.
absl::StatusOr<std::unique_ptr<trine_backend>> MakeBackend(const trine_host* host,
                                                           const std::string& options);

uint32_t CountDevices(const trine_backend& backend);

// Describes a device. Runs the device to find out whether it is exact and what it imports, unless a
// verdict is remembered (verdicts.h).
trine_device_info DescribeDevice(trine_backend* backend, uint32_t index);

absl::StatusOr<std::unique_ptr<trine_device>> MakeDevice(trine_backend* backend, uint32_t index);

const trine_plugin& Table();

}  // namespace trine::vulkan
