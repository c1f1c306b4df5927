#include "backends/vulkan/messages.h"

namespace trine::vulkan {

size_t Messages::count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

std::vector<std::string> Messages::texts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return texts_;
}

void Messages::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  count_ = 0;
  texts_.clear();
}

VkDebugUtilsMessengerCreateInfoEXT Messages::CreateInfo() {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  // General messages are the loader's, about drivers that are of no concern here.
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
  if (messages->texts_.size() < kMostKept) messages->texts_.push_back(text);
  if (messages->sink_) messages->sink_(text);
  return VK_FALSE;
}

}  // namespace trine::vulkan
