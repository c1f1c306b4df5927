#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {

std::vector<const Shader*> AllShaders() {
  return {
#define TRINE_SHADER(name) &shaders::name,
#include "vulkan_shaders/shader_list.inc"
#undef TRINE_SHADER
  };
}

uint64_t HashOfAllShaders() {
  uint64_t hash = 0;
  for (const Shader* shader : AllShaders()) hash = hash * 0x100000001b3 ^ shader->hash;
  return hash;
}

}  // namespace trine::vulkan
