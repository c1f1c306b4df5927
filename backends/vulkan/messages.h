// What the validation layers say: counted, kept and printed.
#ifndef TRINE_BACKENDS_VULKAN_MESSAGES_H_
#define TRINE_BACKENDS_VULKAN_MESSAGES_H_

#include <vulkan/vulkan.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace trine::vulkan {

// Thread-safe. Errors and warnings alike: a clean run has none of either.
class Messages {
 public:
  using Sink = std::function<void(const std::string&)>;

  explicit Messages(Sink sink) : sink_(std::move(sink)) {}

  size_t count() const;
  std::vector<std::string> texts() const;  // the first kMostKept
  void Clear();

  // For vkCreateInstance's chain and for the messenger. `this` must outlive the instance.
  VkDebugUtilsMessengerCreateInfoEXT CreateInfo();

 private:
  static constexpr size_t kMostKept = 64;
  static VKAPI_ATTR VkBool32 VKAPI_CALL Receive(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                VkDebugUtilsMessageTypeFlagsEXT type,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                void* self);

  mutable std::mutex mutex_;
  Sink sink_;
  size_t count_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_MESSAGES_H_
