// The base class of the parsers of GBNF and of regular expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {

// A recursive descent parser. A method that fails sets error_ and returns null or nullopt.
class TextParser {
 protected:
  // The result of Fail, which converts to null and to nullopt.
  struct Nothing {
    operator ExprPtr() const { return nullptr; }
    template <class T>
    operator std::optional<T>() const {
      return std::nullopt;
    }
  };

  explicit TextParser(std::string_view text) : text_(text) {}
  ~TextParser() = default;

  // Sets error_, unless it is set already. Adds the place in the text to it.
  virtual Nothing Fail(std::string_view what) = 0;

  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  bool AtDigit() const { return absl::ascii_isdigit(static_cast<unsigned char>(Peek())); }

  std::optional<int64_t> ParseCount(int64_t most) {
    if (!AtDigit()) return Fail("a count is expected");
    int64_t count = 0;
    for (; AtDigit(); ++at_) {
      count = count * 10 + (Peek() - '0');
      if (count > most) return Fail(absl::StrCat("a count above ", most));
    }
    return count;
  }

  // Parses a character's number with this many digits. `wrong` is the error for a missing digit.
  std::optional<uint32_t> ParseHex(size_t digits, const std::string& wrong) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const auto c = static_cast<unsigned char>(Peek());
      if (!absl::ascii_isxdigit(c)) return Fail(wrong);
      const char lower = absl::ascii_tolower(c);
      value = value << 4 | static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
      return Fail("this is the number of no character");
    }
    return value;
  }

  std::optional<uint32_t> ParseUtf8() {
    const Utf8Step step = NextUtf8(text_.substr(at_));
    if (step.kind != Utf8Step::Kind::kCharacter) return Fail("this is not valid UTF-8");
    at_ += step.bytes;
    return step.code_point;
  }

  std::string_view text_;
  size_t at_ = 0;
  absl::Status error_;
};

}  // namespace trine::constraint
