#include "backends/vulkan/device/messages.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "backends/vulkan/device/loader.h"

namespace trine::vulkan {
namespace {

class ValidationLog {
 public:
  explicit ValidationLog(std::string path) : path_(std::move(path)) {}
  ~ValidationLog() { Append("done: " + std::to_string(count_.load()) + " messages"); }

  void Add(std::string message) {
    ++count_;
    std::replace(message.begin(), message.end(), '\n', ' ');
    Append(message);
  }

 private:
  // Opens the file each time, because several processes write to it and one may be killed.
  void Append(const std::string& line) const {
    std::FILE* file = std::fopen(path_.c_str(), "a");
    if (file == nullptr) return;
    std::fputs((line + "\n").c_str(), file);
    std::fclose(file);
  }

  std::string path_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace

size_t Messages::count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

VkDebugUtilsMessengerCreateInfoEXT Messages::CreateInfo() {
  auto info = Info<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  // Leaves out general messages. The loader sends them, about drivers that do not matter here.
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = Receive;
  info.pUserData = this;
  return info;
}

VkBool32 Messages::Receive(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                           const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  auto* messages = static_cast<Messages*>(self);
  const std::string text = data != nullptr && data->pMessage != nullptr ? data->pMessage : "";
  std::lock_guard<std::mutex> lock(messages->mutex_);
  ++messages->count_;
  if (messages->sink_) messages->sink_(text);
  return VK_FALSE;
}

Messages::Sink ValidationLogFromEnvironment() {
  const char* path = std::getenv("TRINE_VULKAN_MESSAGES");
  if (path == nullptr || *path == '\0') return nullptr;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fclose(file);
  } else {
    std::fprintf(stderr, "vulkan: TRINE_VULKAN_MESSAGES=%s can't be written: printed instead\n",
                 path);
    return nullptr;
  }
  const auto log = std::make_shared<ValidationLog>(path);
  return [log](const std::string& message) { log->Add(message); };
}

}  // namespace trine::vulkan
