// What a device must do before it may call itself exact: a few cases of the ops that a driver can
// get wrong, run as plans, against the reference.
#ifndef TRINE_BACKENDS_VULKAN_SELF_TEST_H_
#define TRINE_BACKENDS_VULKAN_SELF_TEST_H_

#include <string>

#include "trine/backend.h"

namespace trine::vulkan {

struct SelfTestResult {
  bool done = true;     // else an op could not be run, which says nothing of its bits
  std::string failure;  // "" when every bit was equal, else the op that differed, or why not run
};

SelfTestResult RunSelfTest(trine_device* device);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_SELF_TEST_H_
