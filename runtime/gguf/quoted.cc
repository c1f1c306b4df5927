#include "runtime/gguf/quoted.h"

#include <cstdint>
#include <cstdio>

namespace trine::gguf {
namespace {

constexpr size_t kMaxQuoted = 80;

// Returns the length of the printable character at the front of `text`; 0: its first byte must be
// escaped.
size_t PrintableLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t code = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  // C1 controls, and characters that reorder text or break a line.
  if (code < 0xa0 || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (text[0] == '\n' || text[0] == '\t') {
      printable += text[0] == '\n' ? "\\n" : "\\t";
    } else if (length == 0) {
      char escape[5];
      std::snprintf(escape, sizeof(escape), "\\x%02x", static_cast<uint8_t>(text[0]));
      printable += escape;
    } else {
      printable.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return printable;
}

std::string_view Cut(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  // A character has at most three continuation bytes; more of them are not one character.
  while (end > 0 && bytes - end < 4 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, bytes - end < 4 ? end : bytes);
}

std::string Quoted(std::string_view text) {
  const std::string_view front = Cut(text, kMaxQuoted);
  return "'" + Printable(front) + (front.size() < text.size() ? "...'" : "'");
}

}  // namespace trine::gguf
