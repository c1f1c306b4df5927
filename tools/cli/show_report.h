// A model file as text for a terminal, and as JSON for a program.
#ifndef TRINE_TOOLS_CLI_SHOW_REPORT_H_
#define TRINE_TOOLS_CLI_SHOW_REPORT_H_

#include <string>

#include "kernels/quant/block_types.h"
#include "runtime/gguf/gguf_file.h"

namespace trine {

// What -ctk and -ctv offer, by the names they are given there.
struct CacheType {
  const char* name;
  quant::Type type;
};
inline constexpr CacheType kCacheTypes[] = {
    {"f16", quant::Type::kF16}, {"f32", quant::Type::kF32}, {"q8_0", quant::Type::kQ8_KV}};

// Tokens of a pass for which scratch is estimated: the default of -ub.
inline constexpr int64_t kScratchTokens = 512;

// `all_tensors`: one line for each instead of a summary.
std::string FormatModel(const gguf::File& file, bool all_tensors);

std::string FormatModelJson(const gguf::File& file);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_SHOW_REPORT_H_
