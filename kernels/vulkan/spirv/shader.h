// Describes a compute shader as the plugin embeds it: its SPIR-V, and the facts that the build
// found out about it.
#pragma once

#include <cstdint>

namespace trine::vulkan {

// Limits that the build enforces for shaders and that a device must offer.
inline constexpr uint32_t kMaxShaderBindings = 16;
inline constexpr uint32_t kMaxPushBytes = 128;

struct Shader {
  const char* name;
  const uint32_t* words;  // the SPIR-V
  uint32_t word_count;
  uint64_t hash;                 // hash of the words, for the keys of cache files
  uint32_t binding_count;        // storage buffers in set 0, bindings 0 to binding_count - 1
  uint32_t reads;                // bit b: binding b is not writeonly
  uint32_t writes;               // bit b: binding b is not readonly
  uint32_t push_bytes;           // size of the push constant block
  const uint32_t* capabilities;  // the SPIR-V capabilities that it declares
  uint32_t capability_count;
  bool exact;  // passed the check of exact arithmetic (spirv_module.h)
};

}  // namespace trine::vulkan
