// The Vulkan instance and the devices it shows.
#ifndef TRINE_BACKENDS_VULKAN_INSTANCE_H_
#define TRINE_BACKENDS_VULKAN_INSTANCE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/vulkan/device_caps.h"
#include "backends/vulkan/heaps.h"
#include "backends/vulkan/loader.h"
#include "backends/vulkan/messages.h"

namespace trine::vulkan {

struct InstanceOptions {
  bool allow_cpu = false;     // TRINE_VULKAN_ALLOW_CPU=1: devices that run on the CPU
  bool validate = false;      // TRINE_VULKAN_VALIDATE=1: validation and synchronisation validation
  Messages::Sink on_message;  // what validation says; null: to stderr
};
InstanceOptions InstanceOptionsFromEnvironment();

struct FoundDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceCaps caps;
  std::string reason;            // "": may be opened, else why not
  std::shared_ptr<Heaps> heaps;  // of all that have it open
};

class Instance {
 public:
  // NOT_FOUND where no driver is installed. A machine whose drivers show no device has an instance
  // without devices.
  static absl::StatusOr<std::unique_ptr<Instance>> Create(const GlobalTable& global,
                                                          const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceTable& functions() const { return functions_; }
  uint32_t api_version() const { return api_version_; }
  Messages& messages() { return messages_; }

  // All that drivers show, in their order.
  const std::vector<FoundDevice>& devices() const { return devices_; }

  // The handle is never destroyed: a device of it was given up.
  void LeaveBehind() const { left_behind_.store(true, std::memory_order_release); }

  // "" where a device may be opened, else one sentence that says why there is none.
  std::string NoDeviceReason() const;

 private:
  Instance(const GlobalTable& global, const InstanceOptions& options);
  absl::Status ChooseVersion();
  absl::Status CreateHandle();
  absl::Status Listen();  // to the validation layers
  absl::Status FindDevices(bool allow_cpu);

  GlobalTable global_;
  bool validate_;
  Messages messages_;
  InstanceTable functions_;
  uint32_t api_version_ = 0;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<FoundDevice> devices_;
  mutable std::atomic<bool> left_behind_{false};
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_INSTANCE_H_
