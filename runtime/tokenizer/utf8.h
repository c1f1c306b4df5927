// UTF-8 as strict as Unicode 15 (table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF. Pure functions; any thread.
#ifndef TRINE_RUNTIME_TOKENIZER_UTF8_H_
#define TRINE_RUNTIME_TOKENIZER_UTF8_H_

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
    kInvalid,     // can't become one, whatever follows
    kIncomplete,  // the text ends inside one
  };
  Kind kind = Kind::kInvalid;
  // Of the character, or of the longest beginning of one: what one U+FFFD stands for. At least 1.
  size_t bytes = 1;
  uint32_t code_point = 0;  // of a character
};

// What `text`, which is not empty, begins with.
Utf8Step NextUtf8(std::string_view text);

// The first byte that belongs to no character; text.size() when all is well.
size_t FindInvalidUtf8(std::string_view text);

// INVALID_ARGUMENT naming `what`, the byte and its place. For callers that refuse such text.
absl::Status ValidateUtf8(std::string_view text, std::string_view what);

void AppendUtf8(uint32_t code_point, std::string* out);

// Appends `text` with U+FFFD in the place of what isn't UTF-8, but for an incomplete character at
// its very end, which is left out. Returns how many bytes of `text` were used.
size_t AppendValidUtf8(std::string_view text, std::string* out);

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_UTF8_H_
