#include "runtime/gguf/file_type.h"

#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace trine::gguf {
namespace {

// Indexed by number; empty where it was withdrawn.
constexpr const char* kNames[] = {
    "F32",   "F16",     "Q4_0",   "Q4_1",   "",       "",        "",       "Q8_0",   "Q5_0",
    "Q5_1",  "Q2_K",    "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S",  "Q4_K_M", "Q5_K_S", "Q5_K_M",
    "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S",  "IQ4_NL", "IQ3_S",
    "IQ3_M", "IQ2_S",   "IQ2_M",  "IQ4_XS", "IQ1_M",  "BF16",    "",       "",       "",
    "TQ1_0", "TQ2_0",   "MXFP4",  "NVFP4",  "Q1_0",   "Q2_0",
};

}  // namespace

const char* FileTypeName(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(std::size(kNames))) return "";
  return kNames[number];
}

std::optional<uint32_t> FileTypeNumber(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (uint32_t i = 0; i < std::size(kNames); ++i) {
    if (absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()), kNames[i])) return i;
  }
  return std::nullopt;
}

std::string FileTypeOf(const Metadata& metadata) {
  const auto number = metadata.Integer(kFileTypeKey, 0, std::numeric_limits<uint32_t>::max());
  if (!number.ok()) return "";
  const std::string name = FileTypeName(*number);
  return name.empty() ? absl::StrCat("type ", *number) : name;
}

}  // namespace trine::gguf
