// Every shader of this build, by name: shaders::add_f32. The list is made from CMakeLists.txt,
// where a shader is added with one line.
#ifndef TRINE_KERNELS_VULKAN_SHADERS_H_
#define TRINE_KERNELS_VULKAN_SHADERS_H_

#include <vector>

#include "kernels/vulkan/shader.h"

namespace trine::vulkan {

namespace shaders {
#define TRINE_SHADER(name) extern const Shader name;
#include "vulkan_shaders/shader_list.inc"
#undef TRINE_SHADER
}  // namespace shaders

// All of them, in the order of CMakeLists.txt.
std::vector<const Shader*> AllShaders();

// Of all of them together: files that hold for this build's shaders alone are keyed by it.
uint64_t HashOfAllShaders();

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_SHADERS_H_
