// Characters of a Text: places counted in code points, white space, upper and lower case. All texts
// are valid UTF-8.
#ifndef TRINE_RUNTIME_TEMPLATE_CHARACTERS_H_
#define TRINE_RUNTIME_TEMPLATE_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/template/text.h"

namespace trine::jinja {

size_t CountCharacters(std::string_view text);
// The byte that lies `n` characters behind the character at `at`; the end where there are not so
// many.
size_t Forward(std::string_view text, size_t at, int64_t n);
// The same towards the beginning.
size_t Backward(std::string_view text, size_t at, int64_t n);

// Of Unicode, and the byte order mark.
bool IsSpace(uint32_t code_point);
// Bytes of white space at the end; at the beginning.
size_t TrailingSpace(std::string_view text);
size_t LeadingSpace(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
// Without white space there, or without the characters in `characters` where that is given.
Text Strip(const Text& text, Side side, const std::string_view* characters);

Text Upper(const Text& text);
Text Lower(const Text& text);
// The first letter of the text, or of each word, in upper case; the rest in lower case.
Text Capitalize(const Text& text);
Text Title(const Text& text);

// Where `part` is found in `text` from `from` on; npos. Never takes more than linear time.
size_t Find(std::string_view text, std::string_view part, size_t from);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_CHARACTERS_H_
