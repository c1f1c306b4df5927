#include "tools/server/openai/marks.h"

#include <algorithm>

namespace trine::server {

FoundMark FindMark(std::string_view text, std::span<const std::string_view> marks) {
  FoundMark found;
  for (const std::string_view mark : marks) {
    const size_t at = text.find(mark);
    if (at < found.at) found = {.at = at, .mark = mark};
  }
  return found;
}

size_t HeldBytes(std::string_view text, std::span<const std::string_view> marks) {
  size_t longest = 0;
  for (const std::string_view mark : marks) longest = std::max(longest, mark.size());
  for (size_t bytes = std::min(text.size(), longest); bytes > 0; --bytes) {
    if (BeginsMark(text.substr(text.size() - bytes), marks)) return bytes;
  }
  return 0;
}

bool BeginsMark(std::string_view text, std::span<const std::string_view> marks) {
  return std::any_of(marks.begin(), marks.end(), [text](std::string_view mark) {
    return text.size() < mark.size() && mark.starts_with(text);
  });
}

}  // namespace trine::server
