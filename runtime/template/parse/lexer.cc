#include "runtime/template/parse/lexer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/text.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::jinja {
namespace {

using TokenKind = Token::Kind;

// Longer operators come first.
constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", "<=", ">=", "<", ">", "=",
                                           "+",  "-",  "*",  "/",  "%",  "~",  "(", ")", "[",
                                           "]",  "{",  "}",  ",",  ".",  ":",  "|"};

// Limits the length of names, because each use of a name looks it up.
constexpr size_t kMaxNameBytes = 256;

bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source), end_(source.size()) {
    // The newline with which an editor ends a file is not part of the template.
    if (end_ > 0 && source_[end_ - 1] == '\n') --end_;
  }

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < end_) {
      const size_t tag = FindTag();
      AddText(tag);
      at_ = tag;
      if (at_ >= end_) break;
      if (absl::Status s = source_[at_ + 1] == '#' ? SkipComment() : ReadTag(); !s.ok()) return s;
    }
    Add(TokenKind::kEnd, end_, "");
    return std::move(tokens_);
  }

 private:
  absl::Status Fail(size_t offset, std::string_view message) const {
    return AtPlace(source_, offset, Wrong(std::string(message)));
  }
  void Add(TokenKind kind, size_t offset, std::string_view text) {
    tokens_.push_back({kind, offset, std::string(text)});
  }
  bool Looking(std::string_view at) const {
    return source_.substr(at_, end_ - at_).substr(0, at.size()) == at;
  }

  size_t FindTag() const {
    for (size_t at = source_.find('{', at_); at < end_; at = source_.find('{', at + 1)) {
      if (at + 1 < end_ &&
          (source_[at + 1] == '%' || source_[at + 1] == '{' || source_[at + 1] == '#'))
        return at;
    }
    return end_;
  }

  // Adds the text before a tag, without the white space that the tag removes.
  void AddText(size_t tag) {
    std::string_view text = source_.substr(at_, tag - at_);
    const char sign = tag + 2 < end_ ? source_[tag + 2] : '\0';
    if (tag < end_ && sign == '-') {
      text.remove_suffix(TrailingSpace(text));
    } else if (tag < end_ && sign != '+' && source_[tag + 1] != '{') {
      size_t begin = tag;
      while (begin > 0 && (source_[begin - 1] == ' ' || source_[begin - 1] == '\t')) --begin;
      if (begin == 0 || source_[begin - 1] == '\n') {
        text.remove_suffix(std::min(text.size(), tag - begin));
      }
    }
    if (!text.empty()) Add(TokenKind::kText, at_, text);
  }

  // Skips the white space that a tag which ended with `sign` removes.
  void SkipSpaceBehind(char sign, bool takes_newline) {
    if (sign == '-') {
      at_ += LeadingSpace(source_.substr(at_, end_ - at_));
    } else if (takes_newline && sign != '+' && at_ < end_ && source_[at_] == '\n') {
      ++at_;
    }
  }

  absl::Status SkipComment() {
    const size_t close = source_.substr(0, end_).find("#}", at_ + 2);
    if (close == std::string_view::npos) return Fail(at_, "a comment has no end");
    const char sign = close > at_ + 2 ? source_[close - 1] : '\0';
    at_ = close + 2;
    SkipSpaceBehind(sign, true);
    return absl::OkStatus();
  }

  absl::Status ReadTag() {
    const bool block = source_[at_ + 1] == '%';
    const size_t open = at_;
    Add(block ? TokenKind::kOpenBlock : TokenKind::kOpenOutput, at_, source_.substr(at_, 2));
    at_ += 2;
    if (Looking("-") || (block && Looking("+"))) ++at_;
    int braces = 0;
    while (true) {
      at_ += LeadingSpace(source_.substr(at_, end_ - at_));
      if (at_ >= end_) return Fail(open, block ? "a \"{%\" has no end" : "a \"{{\" has no end");
      const std::string_view close = block ? "%}" : "}}";
      const char sign = source_[at_];
      const bool signed_close = (sign == '-' || sign == '+') &&
                                source_.substr(at_ + 1, end_ - at_ - 1).substr(0, 2) == close;
      if (braces == 0 && (signed_close || Looking(close))) {
        Add(block ? TokenKind::kCloseBlock : TokenKind::kCloseOutput, at_, close);
        at_ += signed_close ? 3 : 2;
        SkipSpaceBehind(signed_close ? sign : '\0', block);
        return absl::OkStatus();
      }
      if (absl::Status s = ReadToken(&braces); !s.ok()) return s;
    }
  }

  absl::Status ReadToken(int* braces) {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return ReadString(c);
    if (IsDigit(c)) {
      ReadNumber();
      return absl::OkStatus();
    }
    const size_t begin = at_;
    if (IsNameStart(c)) {
      while (at_ < end_ && (IsNameStart(source_[at_]) || IsDigit(source_[at_]))) ++at_;
      if (at_ - begin > kMaxNameBytes) {
        return AtPlace(source_, begin, TooMuch("a name has more than ", kMaxNameBytes, " letters"));
      }
      Add(TokenKind::kName, begin, source_.substr(begin, at_ - begin));
      return absl::OkStatus();
    }
    for (const std::string_view op : kOperators) {
      if (!Looking(op)) continue;
      if (op == "{") ++*braces;
      if (op == "}") --*braces;
      Add(TokenKind::kOperator, begin, op);
      at_ += op.size();
      return absl::OkStatus();
    }
    return Fail(at_, Words("\"", source_.substr(at_, NextUtf8(source_.substr(at_)).bytes),
                           "\" means nothing here"));
  }

  void ReadNumber() {
    const size_t begin = at_;
    const auto digits = [&] {
      while (at_ < end_ && IsDigit(source_[at_])) ++at_;
    };
    digits();
    // In a.0.1 the numbers are indices.
    const bool index = !tokens_.empty() && tokens_.back().text == "." &&
                       tokens_.back().kind == TokenKind::kOperator;
    if (!index && at_ + 1 < end_ && source_[at_] == '.' && IsDigit(source_[at_ + 1])) {
      ++at_;
      digits();
      Add(TokenKind::kFloat, begin, source_.substr(begin, at_ - begin));
    } else {
      Add(TokenKind::kInteger, begin, source_.substr(begin, at_ - begin));
    }
  }

  absl::Status ReadString(char quote) {
    const size_t begin = at_++;
    std::string text;
    while (at_ < end_ && source_[at_] != quote) {
      if (source_[at_] != '\\') {
        text += source_[at_++];
      } else if (absl::Status s = ReadEscape(&text); !s.ok()) {
        return s;
      }
    }
    if (at_ >= end_) return Fail(begin, "a string has no end");
    ++at_;
    Add(TokenKind::kString, begin, text);
    return absl::OkStatus();
  }

  absl::Status ReadEscape(std::string* text) {
    constexpr std::string_view kLetters = "ntrbfv'\"\\";
    constexpr std::string_view kMeanings = "\n\t\r\b\f\v'\"\\";
    const size_t begin = at_++;
    if (at_ >= end_) return Fail(begin, "a string has no end");
    const char c = source_[at_++];
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      *text += kMeanings[i];
      return absl::OkStatus();
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) return Fail(begin, Words("there is no escape \"\\", std::string(1, c), "\""));
    uint32_t code_point = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const char h =
          at_ < end_ ? absl::ascii_tolower(static_cast<unsigned char>(source_[at_])) : '\0';
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(h))) {
        return Fail(begin, Words("an escape of ", digits, " digits was begun"));
      }
      code_point = code_point << 4 | static_cast<uint32_t>(IsDigit(h) ? h - '0' : h - 'a' + 10);
    }
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) {
      return Fail(begin, "an escape stands for no character");
    }
    AppendUtf8(code_point, text);
    return absl::OkStatus();
  }

  const std::string_view source_;
  size_t end_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

constexpr size_t kShownBefore = 40;
constexpr size_t kShownAfter = 60;

// Returns about a hundred bytes of the line around `column`, cut between characters.
std::string_view Excerpt(std::string_view line, size_t column) {
  const auto whole = [&](size_t at) {
    while (at > 0 && at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80)
      --at;
    return at;
  };
  const size_t begin = whole(column > kShownBefore ? column - kShownBefore : 0);
  const size_t end = whole(std::min(line.size(), column + kShownAfter));
  std::string_view shown = line.substr(begin, end - begin);
  shown.remove_prefix(LeadingSpace(shown));
  shown.remove_suffix(TrailingSpace(shown));
  return shown;
}

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source) { return Lexer(source).Run(); }

absl::Status AtPlace(std::string_view source, size_t offset, const absl::Status& status) {
  offset = std::min(offset, source.size());
  const std::string_view before = source.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const std::string_view line = source.substr(begin, source.find('\n', begin) - begin);
  return absl::Status(
      status.code(),
      Words("chat template, line ", 1 + std::count(before.begin(), before.end(), '\n'), ", column ",
            1 + CountCharacters(source.substr(begin, offset - begin)), ": ", status.message(),
            ", in: ", Excerpt(line, offset - begin)));
}

}  // namespace trine::jinja
