// The names of a split file's parts: NAME-00002-of-00005.gguf.
#ifndef TRINE_RUNTIME_GGUF_SPLIT_NAME_H_
#define TRINE_RUNTIME_GGUF_SPLIT_NAME_H_

#include <cstdint>
#include <optional>
#include <string>

namespace trine::gguf {

struct SplitName {
  std::string prefix;  // folders included
  int64_t number = 0;  // from 0, as split.no; the name counts from 1
  int64_t count = 0;
};

// Nothing when the path has not this form or its numbers make no sense.
std::optional<SplitName> ParseSplitName(const std::string& path);

std::string SplitPath(const std::string& prefix, int64_t number, int64_t count);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_SPLIT_NAME_H_
