// An open device: its functions, its one queue, and whether it is still there.
#ifndef TRINE_BACKENDS_VULKAN_DEVICE_H_
#define TRINE_BACKENDS_VULKAN_DEVICE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/instance.h"

namespace trine::vulkan {

// Thread-safe but for creation and destruction.
class Device {
 public:
  // `instance` outlives the device. Features and extensions are enabled as far as the caps have
  // them, so a shader may use whatever MissingForShader does not miss.
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

  // VkStatus; a device that is lost is so for good: every later Health() says it again.
  absl::Status Check(VkResult result, const std::string& what);
  absl::Status Health() const;
  // Declares it lost without the driver's word, for work that never ends. The device, all that was
  // made of it and its instance are then left behind rather than destroyed: that work uses them.
  absl::Status Abandon(const std::string& sentence);
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

  // Until all that was submitted is done; at once where the device was given up.
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

#endif  // TRINE_BACKENDS_VULKAN_DEVICE_H_
