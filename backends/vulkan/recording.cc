#include "backends/vulkan/recording.h"

#include "absl/strings/str_cat.h"

namespace trine::vulkan {

Recording::~Recording() {
  if (device_.abandoned()) return;
  const DeviceTable& vk = device_.functions();
  for (const Part& part : parts_) vk.DestroyQueryPool(device_.handle(), part.queries, nullptr);
  vk.DestroyCommandPool(device_.handle(), pool_, nullptr);  // and its command buffers
}

absl::StatusOr<std::vector<StepTime>> Recording::Times() const {
  const DeviceCaps& caps = device_.caps();
  const uint64_t mask =
      caps.timestamp_bits >= 64 ? UINT64_MAX : (uint64_t{1} << caps.timestamp_bits) - 1;
  std::vector<StepTime> times;
  for (const Part& part : parts_) {
    if (part.queries == VK_NULL_HANDLE) {
      return absl::FailedPreconditionError("the recording was made without timestamps");
    }
    std::vector<uint64_t> ticks(part.labels.size() + 1);
    const VkResult result = device_.functions().GetQueryPoolResults(
        device_.handle(), part.queries, 0, static_cast<uint32_t>(ticks.size()),
        ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
    if (result == VK_NOT_READY) {
      return absl::FailedPreconditionError("the recording has not run, or is not done");
    }
    absl::Status status = device_.Check(result, "the timestamps of a recording could not be read");
    if (!status.ok()) return status;
    for (size_t i = 0; i < part.labels.size(); ++i) {
      const uint64_t passed = (ticks[i + 1] - ticks[i]) & mask;
      times.push_back({part.labels[i], static_cast<double>(passed) * caps.timestamp_ns});
    }
  }
  return times;
}

}  // namespace trine::vulkan
