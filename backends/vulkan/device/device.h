// An open Vulkan device with its functions, its one queue and its state: working or lost.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device/instance.h"

namespace trine::vulkan {

// Thread-safe, except for creation and destruction.
class Device {
 public:
  // `instance` must outlive the device. Enables all features and extensions that the caps have, so
  // a shader may use all that MissingForShader does not report as missing.
  static absl::StatusOr<std::unique_ptr<Device>> Create(const Instance& instance,
                                                        const FoundDevice& found);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceTable& functions() const { return functions_; }
  const DeviceCaps& caps() const { return caps_; }
  Heaps& heaps() { return *heaps_; }
  VkDevice handle() const { return handle_; }
  VkQueue queue() const { return queue_; }

  // Converts a result as VkStatus does. A lost device stays lost: Health() says why.
  absl::Status Check(VkResult result, const std::string& what);
  absl::Status Health() const;
  // Declares the device lost although the driver did not, because work on it never ends. That work
  // uses the device, all objects made from it and its instance, so they are never destroyed.
  absl::Status Abandon(const std::string& sentence);
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

  // Waits until all submitted work is done. Returns at once if the device was abandoned.
  void WaitIdle();

 private:
  Device(const Instance& instance, const FoundDevice& found)
      : instance_(instance), physical_(found.handle), caps_(found.caps), heaps_(found.heaps) {}
  absl::Status CreateHandle();
  absl::Status DeclareLost(const std::string& sentence);

  const Instance& instance_;
  VkPhysicalDevice physical_;
  DeviceCaps caps_;
  std::shared_ptr<Heaps> heaps_;
  DeviceTable functions_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::atomic<bool> lost_{false};
  std::atomic<bool> abandoned_{false};
  mutable std::mutex mutex_;
  std::string loss_;
};

}  // namespace trine::vulkan
