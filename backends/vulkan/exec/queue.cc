#include "backends/vulkan/exec/queue.h"

#include <chrono>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace trine::vulkan {

absl::StatusOr<std::unique_ptr<Queue>> Queue::Create(Device& device) {
  std::unique_ptr<Queue> queue(new Queue(device));
  auto type = Info<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info = Info<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  info.pNext = &type;
  absl::Status status = device.Check(
      device.functions().CreateSemaphore(device.handle(), &info, nullptr, &queue->timeline_),
      "no timeline could be made");
  if (!status.ok()) return status;
  return queue;
}

Queue::~Queue() {
  if (timeline_ == VK_NULL_HANDLE || device_.abandoned()) return;
  device_.WaitIdle();
  device_.functions().DestroySemaphore(device_.handle(), timeline_, nullptr);
}

absl::StatusOr<uint64_t> Queue::Submit(const Recording& recording) {
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t parts = recording.parts();
  if (parts == 0) return submitted_;
  // Submits all parts in one call, so that all are submitted or none. Each has its own signal, so
  // that no driver merges them.
  std::vector<uint64_t> values(parts);
  std::vector<VkCommandBuffer> commands(parts);
  std::vector<VkTimelineSemaphoreSubmitInfo> timelines(parts);
  std::vector<VkSubmitInfo> submits(parts);
  for (size_t i = 0; i < parts; ++i) {
    values[i] = submitted_ + 1 + i;
    commands[i] = recording.commands(i);
    timelines[i].sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timelines[i].signalSemaphoreValueCount = 1;
    timelines[i].pSignalSemaphoreValues = &values[i];
    submits[i].sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submits[i].pNext = &timelines[i];
    submits[i].commandBufferCount = 1;
    submits[i].pCommandBuffers = &commands[i];
    submits[i].signalSemaphoreCount = 1;
    submits[i].pSignalSemaphores = &timeline_;
  }
  absl::Status status =
      device_.Check(device_.functions().QueueSubmit(device_.queue(), static_cast<uint32_t>(parts),
                                                    submits.data(), VK_NULL_HANDLE),
                    "work could not be submitted");
  if (!status.ok()) return status;
  submitted_ += parts;
  return submitted_;
}

void Queue::Note(uint64_t point) {
  uint64_t before = reached_.load(std::memory_order_relaxed);
  while (before < point && !reached_.compare_exchange_weak(before, point)) {
  }
}

VkResult Queue::Poll(uint64_t point, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (;;) {
    uint64_t value = 0;
    const VkResult result =
        device_.functions().GetSemaphoreCounterValue(device_.handle(), timeline_, &value);
    if (result == VK_ERROR_DEVICE_LOST || (result == VK_SUCCESS && value >= point)) return result;
    const auto passed = std::chrono::nanoseconds(Clock::now() - start).count();
    if (static_cast<uint64_t>(passed) >= timeout_ns) return VK_TIMEOUT;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

absl::Status Queue::Wait(uint64_t point, uint64_t timeout_ns) {
  if (reached_.load() >= point) return absl::OkStatus();
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  auto info = Info<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &point;
  VkResult result = device_.functions().WaitSemaphores(device_.handle(), &info, timeout_ns);
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    // The work continues all the same, and its memory must not be freed before it is done.
    result = Poll(point, timeout_ns);
  }
  if (result == VK_SUCCESS) {
    Note(point);
    return absl::OkStatus();
  }
  if (result == VK_TIMEOUT) {
    return absl::DeadlineExceededError(absl::StrCat(
        device_.caps().name, ": work is not done after ", timeout_ns / 1'000'000, " ms"));
  }
  return device_.Check(result, "work could not be waited for");
}

absl::StatusOr<uint64_t> Queue::Reached() {
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  uint64_t value = 0;
  absl::Status status = device_.Check(
      device_.functions().GetSemaphoreCounterValue(device_.handle(), timeline_, &value),
      "the timeline could not be asked");
  if (!status.ok()) return status;
  return value;
}

Recording::~Recording() {
  if (device_.abandoned()) return;
  const DeviceTable& vk = device_.functions();
  for (const Part& part : parts_) vk.DestroyQueryPool(device_.handle(), part.queries, nullptr);
  vk.DestroyCommandPool(device_.handle(), pool_, nullptr);  // frees its command buffers too
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
