// UTF-8 text that knows which of its bytes are foreign: from a message, a tool or a variable, not
// from the template. The mark stays with the bytes through all operations, so that "<|im_end|>"
// typed by a user can be told from the template's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trine::jinja {

class Text {
 public:
  struct Span {
    size_t begin = 0;
    size_t end = 0;
    bool operator==(const Span&) const = default;
  };

  Text() = default;
  explicit Text(std::string bytes, bool foreign = false);

  void Append(std::string_view bytes, bool foreign);
  void Append(const Text& other) { Append(other, 0, other.size()); }
  // Appends bytes [begin, end) of another text, which must not be this text.
  void Append(const Text& other, size_t begin, size_t end);

  Text Slice(size_t begin, size_t end) const;
  bool ForeignAt(size_t byte) const;

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Returns the spans of foreign bytes, ascending, with gaps between them.
  const std::vector<Span>& foreign() const { return foreign_; }
  bool has_foreign() const { return !foreign_.empty(); }
  // Returns the approximate memory in bytes.
  size_t memory() const { return bytes_.size() + foreign_.size() * sizeof(Span); }

 private:
  void Mark(size_t begin, size_t end);

  std::string bytes_;
  std::vector<Span> foreign_;
};

// Returns the number of code points. Here and below, texts are valid UTF-8.
size_t CountCharacters(std::string_view text);
// Returns the offset in bytes of the character that is `n` characters after the one at `at`, or the
// end if there are fewer.
size_t Forward(std::string_view text, size_t at, int64_t n);
// Returns the offset in bytes of the character that is `n` characters before `at`, or 0 if there
// are fewer.
size_t Backward(std::string_view text, size_t at, int64_t n);

// Returns whether the character is Unicode white space or the byte order mark.
bool IsSpace(uint32_t code_point);
// Return the number of bytes of white space at the end and at the beginning.
size_t TrailingSpace(std::string_view text);
size_t LeadingSpace(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
// Removes white space at these sides or, if `characters` is not null, any of these characters.
Text Strip(const Text& text, Side side, const std::string_view* characters);

Text Upper(const Text& text);
Text Lower(const Text& text);
// Put the first letter of the text, or of each word, in upper case and the rest in lower case.
Text Capitalize(const Text& text);
Text Title(const Text& text);

// Returns the offset of the first `part` in `text` at or after `from`, or npos. Takes linear time
// at most.
size_t Find(std::string_view text, std::string_view part, size_t from);

}  // namespace trine::jinja
