#include "kernels/vulkan/shaders.h"

namespace trine::vulkan {

std::vector<const Shader*> AllShaders() {
  return {
#define TRINE_SHADER(name) &shaders::name,
#include "vulkan_shaders/shader_list.inc"
#undef TRINE_SHADER
  };
}

}  // namespace trine::vulkan
