#include "runtime/tokenizer/utf8.h"

#include <cstdio>

#include "absl/strings/str_format.h"

namespace trine {
namespace {

// The length of a character by its lead byte (0: not a lead), and the range of the second byte.
struct Lead {
  uint8_t bytes;
  uint8_t low;
  uint8_t high;
};

Lead DescribeLead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step NextUtf8(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Lead lead = DescribeLead(byte(0));
  if (lead.bytes == 0) return {Utf8Step::Kind::kInvalid, 1, 0};
  if (lead.bytes == 1) return {Utf8Step::Kind::kCharacter, 1, byte(0)};
  uint32_t code_point = byte(0) & (0x7Fu >> lead.bytes);
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::kIncomplete, i, 0};
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {Utf8Step::Kind::kCharacter, lead.bytes, code_point};
}

size_t FindInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.bytes;
  }
  return at;
}

absl::Status ValidateUtf8(std::string_view text, std::string_view what) {
  const size_t at = FindInvalidUtf8(text);
  if (at == text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is not valid UTF-8: the byte 0x%02x at offset %d belongs to no character",
      absl::string_view(what.data(), what.size()), static_cast<uint8_t>(text[at]), at));
}

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  const auto put_rest = [&](int shift) { put(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put_rest(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xF0 | code_point >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

size_t AppendValidUtf8(std::string_view text, std::string* out) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    out->append(step.kind == Utf8Step::Kind::kCharacter ? text.substr(at, step.bytes)
                                                        : kReplacementCharacter);
    at += step.bytes;
  }
  return at;
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (step.kind == Utf8Step::Kind::kCharacter && first >= 0x20 && first != 0x7f) {
      out.append(text.substr(0, step.bytes));
    } else {
      for (const char byte : text.substr(0, step.bytes)) {
        char escaped[5];
        std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(byte));
        out += escaped;
      }
    }
    text.remove_prefix(step.bytes);
  }
  return out;
}

}  // namespace trine
