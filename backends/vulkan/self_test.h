// What a device must do before it may call itself exact: a few cases of the ops that a driver can
// get wrong, run as plans, against the reference.
#ifndef TRINE_BACKENDS_VULKAN_SELF_TEST_H_
#define TRINE_BACKENDS_VULKAN_SELF_TEST_H_

#include <string>

#include "trine/backend.h"

namespace trine::vulkan {

// "" when every bit was equal, else the op that differed, or could not be run and why.
std::string SelfTestFailure(trine_device* device);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_SELF_TEST_H_
