// What a device must do before it may call itself exact: small graphs that use each of its shaders,
// run as plans, against the reference.
#ifndef TRINE_BACKENDS_VULKAN_SELF_TEST_H_
#define TRINE_BACKENDS_VULKAN_SELF_TEST_H_

#include <string>

#include "trine/backend.h"

namespace trine::vulkan {

struct SelfTestResult {
  bool done = true;     // else a graph could not be run, which says nothing of its bits
  std::string failure;  // "" when every bit was equal, else the ops that differed, or why not run
};

SelfTestResult RunSelfTest(trine_device* device);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_SELF_TEST_H_
