// Declares every shader of this build by name: shaders::add_f32. A line in CMakeLists.txt adds one.
#pragma once

#include <vector>

#include "kernels/vulkan/spirv/shader.h"

namespace trine::vulkan {

namespace shaders {
#define TRINE_SHADER(name) extern const Shader name;
#include "vulkan_shaders/shader_list.inc"
#undef TRINE_SHADER
}  // namespace shaders

// Returns all shaders, in the order of CMakeLists.txt.
std::vector<const Shader*> AllShaders();

// Returns a hash of all shaders, as a key for files that are valid only for this build's shaders.
uint64_t HashOfAllShaders();

}  // namespace trine::vulkan
