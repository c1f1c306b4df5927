// Counts the messages of Vulkan's validation layers and passes them on.
#pragma once

#include <vulkan/vulkan.h>

#include <functional>
#include <mutex>
#include <string>

namespace trine::vulkan {

// Thread-safe. Treats errors and warnings alike: a clean run has neither.
class Messages {
 public:
  using Sink = std::function<void(const std::string&)>;

  explicit Messages(Sink sink) : sink_(std::move(sink)) {}

  size_t count() const;

  // Returns the info for vkCreateInstance's chain and the messenger. Must outlive the instance.
  VkDebugUtilsMessengerCreateInfoEXT CreateInfo();

 private:
  static VKAPI_ATTR VkBool32 VKAPI_CALL Receive(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                VkDebugUtilsMessageTypeFlagsEXT type,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                void* self);

  mutable std::mutex mutex_;
  Sink sink_;
  size_t count_ = 0;
};

// Returns a sink that appends each message as a line to the file TRINE_VULKAN_MESSAGES, and at its
// end "done: N messages". Returns null if the variable is not set or the file can't be written. For
// tests that can't see the stderr of their processes.
Messages::Sink ValidationLogFromEnvironment();

}  // namespace trine::vulkan
