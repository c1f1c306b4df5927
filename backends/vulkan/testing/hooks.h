// Replaces one device function of a real Vulkan.
#pragma once

#include <vulkan/vulkan.h>

namespace trine::vulkan::testing {

// Returns an entry that finds all functions as `real` does, except `name` ("vkCmdPipelineBarrier"),
// which becomes `replacement`. Only one replacement is in effect at a time.
PFN_vkGetInstanceProcAddr Replace(PFN_vkGetInstanceProcAddr real, const char* name,
                                  PFN_vkVoidFunction replacement);

}  // namespace trine::vulkan::testing
