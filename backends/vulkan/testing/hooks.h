// A real Vulkan with one of its device functions replaced.
#ifndef TRINE_BACKENDS_VULKAN_TESTING_HOOKS_H_
#define TRINE_BACKENDS_VULKAN_TESTING_HOOKS_H_

#include <vulkan/vulkan.h>

namespace trine::vulkan::testing {

// An entry that finds everything as `real` does, but for `name` ("vkCmdPipelineBarrier"), which is
// `replacement`. One at a time.
PFN_vkGetInstanceProcAddr Replace(PFN_vkGetInstanceProcAddr real, const char* name,
                                  PFN_vkVoidFunction replacement);

}  // namespace trine::vulkan::testing

#endif  // TRINE_BACKENDS_VULKAN_TESTING_HOOKS_H_
