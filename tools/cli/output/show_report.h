// Describes a model file, as text for a terminal and as JSON for a program.
#pragma once

#include <string>

#include "kernels/quant/block_types.h"
#include "runtime/gguf/gguf_file.h"

namespace trine {

// The types that -ctk and -ctv accept, with their names there.
struct CacheType {
  const char* name;
  quant::Type type;
};
inline constexpr CacheType kCacheTypes[] = {
    {"f16", quant::Type::kF16}, {"f32", quant::Type::kF32}, {"q8_0", quant::Type::kQ8_KV}};

// Scratch is estimated for passes of this many tokens, the default of -ub.
inline constexpr int64_t kScratchTokens = 512;

// Describe the file. `all_tensors`: one line for each tensor instead of a summary.
std::string FormatModel(const gguf::File& file, bool all_tensors);

std::string FormatModelJson(const gguf::File& file);

}  // namespace trine
