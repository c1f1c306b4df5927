// Marks in a text that comes in pieces.
#ifndef TRINE_TOOLS_SERVER_OPENAI_MARKS_H_
#define TRINE_TOOLS_SERVER_OPENAI_MARKS_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace trine::server {

struct FoundMark {
  size_t at = std::string_view::npos;  // npos: none is there
  std::string_view mark;
};

// The first of them in the text.
FoundMark FindMark(std::string_view text, std::span<const std::string_view> marks);

// Bytes at the end of the text that may be the beginning of a mark.
size_t HeldBytes(std::string_view text, std::span<const std::string_view> marks);

// The text is the beginning of a mark, and not all of it.
bool BeginsMark(std::string_view text, std::span<const std::string_view> marks);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_MARKS_H_
