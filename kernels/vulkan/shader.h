// A compute shader as it is embedded in the plugin: its SPIR-V, and what the build read out of it.
#ifndef TRINE_KERNELS_VULKAN_SHADER_H_
#define TRINE_KERNELS_VULKAN_SHADER_H_

#include <cstdint>

namespace trine::vulkan {

// Limits that the build holds shaders to and that a device must offer.
inline constexpr uint32_t kMaxShaderBindings = 16;
inline constexpr uint32_t kMaxPushBytes = 128;

struct Shader {
  const char* name;
  const uint32_t* words;  // of SPIR-V
  uint32_t word_count;
  uint64_t hash;                 // of the words: cache files are keyed by it
  uint32_t binding_count;        // storage buffers in set 0, bindings 0 to binding_count - 1
  uint32_t reads;                // bit b: binding b is not writeonly
  uint32_t writes;               // bit b: binding b is not readonly
  uint32_t push_bytes;           // of the push constant block
  const uint32_t* capabilities;  // SPIR-V capabilities it declares
  uint32_t capability_count;
  bool exact;  // passed the check of exact arithmetic (spirv_module.h)
};

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_SHADER_H_
