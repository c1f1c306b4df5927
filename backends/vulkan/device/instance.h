// Opens the Vulkan instance and lists the physical devices that it shows.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/vulkan/device/device_caps.h"
#include "backends/vulkan/device/loader.h"
#include "backends/vulkan/device/messages.h"

namespace trine::vulkan {

// Knows how much of a device's memory is left. Asks the driver, if the driver can tell. Otherwise
// subtracts from the heaps' sizes what this backend has taken, over all uses of the device.
// Thread-safe.
class Heaps {
 public:
  // `functions` must outlive this object.
  Heaps(const InstanceTable& functions, VkPhysicalDevice device, const DeviceCaps& caps);
  Heaps(const Heaps&) = delete;
  Heaps& operator=(const Heaps&) = delete;

  void Take(uint32_t heap, uint64_t bytes) { used_[heap] += bytes; }
  void GiveBack(uint32_t heap, uint64_t bytes) { used_[heap] -= bytes; }

  // Returns the bytes of one heap that may still be taken.
  uint64_t Left(uint32_t heap) const;
  // Returns the bytes left in the device's own heaps, or in all heaps if it has none of its own.
  uint64_t FreeBytes() const;
  // Returns the bytes of all heaps that this backend has taken, imports included.
  uint64_t UsedBytes() const;

 private:
  // Returns the bytes left in each heap, all read at one moment.
  std::array<uint64_t, VK_MAX_MEMORY_HEAPS> LeftOfAll() const;

  const InstanceTable& functions_;
  VkPhysicalDevice device_;
  VkPhysicalDeviceMemoryProperties memory_;
  bool driver_tells_;
  std::array<std::atomic<uint64_t>, VK_MAX_MEMORY_HEAPS> used_{};
};

// The settings of an instance, from the environment or a test.
struct InstanceOptions {
  bool allow_cpu = false;     // TRINE_VULKAN_ALLOW_CPU=1: use devices that run on the CPU
  bool validate = false;      // TRINE_VULKAN_VALIDATE=1: validation and synchronisation validation
  Messages::Sink on_message;  // receives validation messages; null: they go to stderr
};
InstanceOptions InstanceOptionsFromEnvironment();

// A physical device that a driver shows, used or not.
struct FoundDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceCaps caps;
  std::string reason;            // why it may not be opened; "": it may
  std::shared_ptr<Heaps> heaps;  // shared by all openings of the device
};

// Owns the Vulkan instance. Must outlive the devices that are opened from it.
class Instance {
 public:
  // Returns NOT_FOUND if there is no driver. If drivers show no device, devices() is empty.
  static absl::StatusOr<std::unique_ptr<Instance>> Create(const GlobalTable& global,
                                                          const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceTable& functions() const { return functions_; }
  Messages& messages() { return messages_; }

  // Returns all devices that the drivers show, in their order.
  const std::vector<FoundDevice>& devices() const { return devices_; }

  // Makes the destructor leave the Vulkan instance open, because an abandoned device uses it.
  void LeaveBehind() const { left_behind_.store(true, std::memory_order_release); }

  // Returns one sentence that says why no device may be opened, or "" if one may.
  std::string NoDeviceReason() const;

 private:
  Instance(const GlobalTable& global, const InstanceOptions& options);
  absl::Status ChooseVersion();
  absl::Status CreateHandle();
  absl::Status Listen();  // receives messages of the validation layers
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

// Returns for each device, in order, why it is not used, or "" if it is used. Devices with the same
// UUID are one chip under several drivers; only the device with the best driver is used. Devices
// that run on the CPU are used only if `allow_cpu`.
std::vector<std::string> ReasonsAgainst(const std::vector<DeviceCaps>& devices, bool allow_cpu);

}  // namespace trine::vulkan
