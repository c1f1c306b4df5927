// The ABI's opaque handles, as this plugin has them.
#ifndef TRINE_BACKENDS_VULKAN_HANDLES_H_
#define TRINE_BACKENDS_VULKAN_HANDLES_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/op_runs.h"
#include "backends/vulkan/open_device.h"
#include "backends/vulkan/verdicts.h"
#include "trine/backend_sdk.h"

struct trine_backend {
  const trine_host* host = nullptr;
  trine::vulkan::DeviceOptions options;
  std::unique_ptr<trine::vulkan::Instance> instance;  // null: there is no driver

  // Of each device.
  struct Known {
    std::optional<trine::vulkan::Verdict> verdict;  // once it was asked for
    int import_trials = 0;
  };
  std::mutex mutex;
  std::vector<Known> known;
};

struct trine_device {
  trine_backend* backend = nullptr;
  std::unique_ptr<trine::vulkan::OpenDevice> open;
  bool exact = false;
  trine::vulkan::ImportTrial imports;  // as far as it was known when this was opened
  trine::vulkan::RunChoices choices;

  // OK, or UNAVAILABLE: a lost device says so in every call.
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
  uint32_t memory = 0;
  bool read_only = false;

  bool InRange(uint64_t offset, uint64_t n) const { return offset <= bytes && n <= bytes - offset; }
};

struct trine_timeline : trine::sdk::Timeline {
  using Timeline::Timeline;
};

namespace trine::vulkan {

using Timelines = sdk::TimelineCalls<trine_timeline>;

using sdk::Fail;

// The numbers are the same.
inline trine_status Fail(trine_error* err, const absl::Status& status) {
  return sdk::Fail(err, static_cast<trine_status>(status.code()), std::string(status.message()));
}

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_HANDLES_H_
