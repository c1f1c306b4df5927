// Makes ids for a plugin's own layouts.
#ifndef TRINE_SDK_LAYOUT_H_
#define TRINE_SDK_LAYOUT_H_

#include <cstdint>

#include "trine/backend.h"

namespace trine::sdk {

// Returns a layout id. Its high half is a hash of the plugin's name (docs/plugin-abi.md,
// "Layouts"), so that ids of two plugins differ. Its low half is `number`, which the plugin
// chooses.
constexpr uint64_t OwnLayout(const char* plugin, uint32_t number) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (; *plugin != '\0'; ++plugin) hash = (hash ^ static_cast<unsigned char>(*plugin)) * 16777619u;
  return uint64_t{hash == 0 ? 1 : hash} << 32 | number;
}

// Returns a dimension of a tensor whose dimensions are no parameters. Returns 1 beyond its rank.
inline uint64_t KnownDim(const trine_tensor& t, uint32_t i) {
  return i < t.rank ? static_cast<uint64_t>(t.dims[i]) : 1;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_LAYOUT_H_
