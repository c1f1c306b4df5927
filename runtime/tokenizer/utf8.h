// Strict UTF-8 as in Unicode 15 (table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF. Pure functions; any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace trine {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Step {
  enum class Kind {
    kCharacter,   // a whole character
    kInvalid,     // bytes that can't become a character, whatever follows
    kIncomplete,  // the text ends inside a character
  };
  Kind kind = Kind::kInvalid;
  // How many bytes the character has. If it is no whole character, how many bytes one U+FFFD stands
  // for: the longest beginning of a character, or 1.
  size_t bytes = 1;
  uint32_t code_point = 0;  // if kCharacter
};

// Reads the first character of `text`. REQUIRES: `text` is not empty.
Utf8Step NextUtf8(std::string_view text);

// Returns the offset of the first byte that belongs to no character, or text.size().
size_t FindInvalidUtf8(std::string_view text);

// Returns INVALID_ARGUMENT, naming `what`, the wrong byte and its place, if `text` is not UTF-8.
absl::Status ValidateUtf8(std::string_view text, std::string_view what);

void AppendUtf8(uint32_t code_point, std::string* out);

// Appends `text` to *out, with U+FFFD in place of invalid UTF-8. Leaves out an incomplete character
// at the end. Returns how many bytes of `text` were used.
size_t AppendValidUtf8(std::string_view text, std::string* out);

// Returns the text with control characters and invalid UTF-8 written as \xNN.
std::string Printable(std::string_view text);

}  // namespace trine
