// What the validation layers say, in a file: for tests whose processes keep their stderr to
// themselves.
#ifndef TRINE_BACKENDS_VULKAN_VALIDATION_LOG_H_
#define TRINE_BACKENDS_VULKAN_VALIDATION_LOG_H_

#include "backends/vulkan/messages.h"

namespace trine::vulkan {

// TRINE_VULKAN_MESSAGES names the file: each message is appended to it, a line each, and when the
// sink is gone "done: N messages". Null where the variable is not set.
Messages::Sink ValidationLogFromEnvironment();

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_VALIDATION_LOG_H_
