// The backend, its devices and its table, as the ABI shows them. A plan is a checked graph bound to
// memory; it is recorded for the parameters of a run and replayed as long as they stay the same.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/common/gpu_plugin.h"
#include "backends/vulkan/device/loader.h"
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

  // Returns OK, or UNAVAILABLE if the device is lost. Every call reports the loss.
  trine_status Health(trine_error* err) const {
    const absl::Status status = open->device->Health();
    if (status.ok()) return TRINE_OK;
    return trine::sdk::Fail(err, TRINE_UNAVAILABLE, std::string(status.message()));
  }

  uint32_t Support() const { return exact ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST; }
};

struct trine_buffer {
  trine_device* device = nullptr;
  trine::vulkan::Allocation allocation;
  uint64_t bytes = 0;
  bool read_only = false;

  bool InRange(uint64_t offset, uint64_t n) const { return offset <= bytes && n <= bytes - offset; }
};

namespace trine::vulkan {

using backends::Answer;
using backends::Fail;

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

}  // namespace trine::vulkan
