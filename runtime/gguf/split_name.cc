#include "runtime/gguf/split_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace trine::gguf {
namespace {

constexpr size_t kDigits = 5;
constexpr absl::string_view kForm = "-00000-of-00000.gguf";  // each 0 stands for a digit

int64_t Number(absl::string_view digits) {
  int64_t number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  return number;
}

}  // namespace

std::optional<SplitName> ParseSplitName(const std::string& path) {
  if (path.size() <= kForm.size()) return std::nullopt;
  const size_t prefix_bytes = path.size() - kForm.size();
  const absl::string_view tail = absl::string_view(path).substr(prefix_bytes);
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !absl::ascii_isdigit(static_cast<unsigned char>(tail[i]))
                        : tail[i] != kForm[i]) {
      return std::nullopt;
    }
  }
  SplitName name;
  name.prefix = path.substr(0, prefix_bytes);
  name.number = Number(tail.substr(kForm.find('0'), kDigits)) - 1;
  name.count = Number(tail.substr(kForm.find("-of-") + 4, kDigits));
  if (name.number < 0 || name.number >= name.count) return std::nullopt;
  return name;
}

std::string SplitPath(const std::string& prefix, int64_t number, int64_t count) {
  return absl::StrFormat("%s-%05d-of-%05d.gguf", prefix, number + 1, count);
}

}  // namespace trine::gguf
