#include "runtime/constraint/regex_parser.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxBytes = 1 << 16;
constexpr int kMaxNesting = 100;
constexpr int64_t kMaxRepeat = 10000;

const CodePointSet& Digits() {
  static const auto* const set = new CodePointSet{{'0', '9'}};
  return *set;
}
const CodePointSet& WordCharacters() {
  static const auto* const set = new CodePointSet{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return *set;
}
const CodePointSet& Spaces() {
  static const auto* const set = new CodePointSet{
      {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
      {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return *set;
}
const CodePointSet& LineEnds() {
  static const auto* const set = new CodePointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return *set;
}

// Recursive descent. A method that returns nothing has set error_.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<ExprPtr> Parse() {
    ExprPtr expr = ParseChoice(0);
    if (error_.ok() && at_ < text_.size()) Fail("')' without '('");
    if (!error_.ok()) return error_;
    return expr;
  }

 private:
  std::nullptr_t Fail(std::string_view what) {
    if (error_.ok()) {
      error_ = absl::InvalidArgumentError(
          absl::StrCat(absl::string_view(what.data(), what.size()), ", at character ", at_ + 1));
    }
    return nullptr;
  }

  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  static ExprPtr Anything() { return Repeat(Character(CodePointSet::All()), 0, Expr::kNoLimit); }

  ExprPtr ParseChoice(int nesting) {
    if (nesting > kMaxNesting) return Fail("nested too deep");
    std::vector<ExprPtr> parts;
    do {
      ExprPtr part = ParseSequence(nesting);
      if (part == nullptr) return nullptr;
      parts.push_back(std::move(part));
    } while (Take("|"));
    return Choice(std::move(parts));
  }

  ExprPtr ParseSequence(int nesting) {
    std::vector<ExprPtr> parts;
    if (nesting == 0 && !Take("^")) parts.push_back(Anything());
    bool anchored = false;
    while (at_ < text_.size() && Peek() != '|' && Peek() != ')') {
      if (Peek() == '$') {
        ++at_;
        if (nesting > 0 || (at_ < text_.size() && Peek() != '|')) {
          return Fail("$ is supported only at the end of the pattern");
        }
        anchored = true;
        break;
      }
      ExprPtr part = ParseAtom(nesting);
      if (part == nullptr) return nullptr;
      part = ParseRepeats(std::move(part));
      if (part == nullptr) return nullptr;
      parts.push_back(std::move(part));
    }
    if (nesting == 0 && !anchored) parts.push_back(Anything());
    return Sequence(std::move(parts));
  }

  ExprPtr ParseAtom(int nesting) {
    if (Peek() == '(') return ParseGroup(nesting);
    if (Peek() == '[') return ParseClass();
    if (Take(".")) return Character(LineEnds().Complement());
    if (Peek() == '^') return Fail("^ is supported only at the beginning of the pattern");
    if (Peek() == '*' || Peek() == '+' || Peek() == '?' || Peek() == '{' || Peek() == '}' ||
        Peek() == ']') {
      return Fail(absl::StrCat("'", std::string(1, Peek()), "' has nothing before it"));
    }
    std::optional<CodePointSet> set = ParseCharacters(false);
    if (!set.has_value()) return nullptr;
    return Character(*std::move(set));
  }

  ExprPtr ParseGroup(int nesting) {
    Take("(");
    if (Peek() == '?' && !Take("?:")) {
      if (Peek(1) == '<' && Peek(2) != '=' && Peek(2) != '!') {
        const size_t end = text_.find('>', at_);
        if (end == text_.npos) return Fail("the group's name has no end");
        at_ = end + 1;
      } else {
        return Fail("look-around and flags are not supported");
      }
    }
    ExprPtr inner = ParseChoice(nesting + 1);
    if (inner != nullptr && !Take(")")) return Fail("')' is expected");
    return inner;
  }

  ExprPtr ParseRepeats(ExprPtr part) {
    int64_t min = 0, max = 0;
    if (Take("*")) {
      max = Expr::kNoLimit;
    } else if (Take("+")) {
      min = 1;
      max = Expr::kNoLimit;
    } else if (Take("?")) {
      max = 1;
    } else if (Take("{")) {
      if (!ParseCount(&min)) return nullptr;
      max = min;
      if (Take(",")) {
        max = Expr::kNoLimit;
        if (Peek() != '}' && !ParseCount(&max)) return nullptr;
      }
      if (!Take("}")) return Fail("'}' is expected");
      if (max != Expr::kNoLimit && max < min) return Fail("the most is below the least");
    } else {
      return part;
    }
    Take("?");  // reluctant: the texts are the same
    return Repeat(std::move(part), min, max);
  }

  bool ParseCount(int64_t* count) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(Peek()))) {
      Fail("a count is expected");
      return false;
    }
    for (*count = 0; absl::ascii_isdigit(static_cast<unsigned char>(Peek())); ++at_) {
      *count = *count * 10 + (Peek() - '0');
      if (*count > kMaxRepeat) {
        Fail(absl::StrCat("a count above ", kMaxRepeat));
        return false;
      }
    }
    return true;
  }

  ExprPtr ParseClass() {
    Take("[");
    const bool negated = Take("^");
    CodePointSet set;
    while (Peek() != ']') {
      if (at_ >= text_.size()) return Fail("']' is expected");
      const std::optional<CodePointSet> first = ParseCharacters(true);
      if (!first.has_value()) return nullptr;
      if (Peek() != '-' || Peek(1) == ']' || at_ + 1 >= text_.size()) {
        set.Add(*first);
        continue;
      }
      ++at_;
      const std::optional<CodePointSet> last = ParseCharacters(true);
      if (!last.has_value()) return nullptr;
      const bool single = IsSingle(*first) && IsSingle(*last);
      if (!single || first->ranges()[0].low > last->ranges()[0].low) {
        return Fail("this is no range of characters");
      }
      set.Add(first->ranges()[0].low, last->ranges()[0].low);
    }
    Take("]");
    return Character(negated ? set.Complement() : std::move(set));
  }

  static bool IsSingle(const CodePointSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].low == set.ranges()[0].high;
  }

  // One character, or an escape such as \d that stands for several.
  std::optional<CodePointSet> ParseCharacters(bool in_class) {
    if (!Take("\\")) {
      const Utf8Step step = NextUtf8(text_.substr(at_));
      if (step.kind != Utf8Step::Kind::kCharacter) {
        Fail("this is not valid UTF-8");
        return std::nullopt;
      }
      at_ += step.bytes;
      return CodePointSet{{step.code_point, step.code_point}};
    }
    const char c = Peek();
    ++at_;
    switch (c) {
      case 'd':
        return Digits();
      case 'D':
        return Digits().Complement();
      case 'w':
        return WordCharacters();
      case 'W':
        return WordCharacters().Complement();
      case 's':
        return Spaces();
      case 'S':
        return Spaces().Complement();
      default:
        break;
    }
    const std::optional<uint32_t> one = ParseEscape(c, in_class);
    if (!one.has_value()) return std::nullopt;
    return CodePointSet{{*one, *one}};
  }

  std::optional<uint32_t> ParseEscape(char c, bool in_class) {
    switch (c) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return ParseHex(2);
      case 'u':
        if (Take("{")) {
          const size_t end = text_.find('}', at_);
          const size_t digits = end == text_.npos ? 0 : end - at_;
          const std::optional<uint32_t> value = ParseHex(digits >= 1 && digits <= 6 ? digits : 1);
          Take("}");
          return value;
        }
        return ParseHex(4);
      case '0':
        if (!absl::ascii_isdigit(static_cast<unsigned char>(Peek()))) return 0;
        break;
      case 'b':
        if (in_class) return '\b';
        break;
      default:
        if (absl::ascii_ispunct(static_cast<unsigned char>(c))) return static_cast<uint32_t>(c);
    }
    at_ -= 1;
    Fail(absl::StrCat("\\", at_ < text_.size() ? std::string(1, c) : "", " is not supported"));
    return std::nullopt;
  }

  std::optional<uint32_t> ParseHex(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const auto c = static_cast<unsigned char>(Peek());
      if (!absl::ascii_isxdigit(c)) {
        Fail("hexadecimal digits are expected");
        return std::nullopt;
      }
      const char lower = absl::ascii_tolower(c);
      value = value << 4 | static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
      Fail("this is the number of no character");
      return std::nullopt;
    }
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<ExprPtr> ParseRegex(std::string_view pattern) {
  if (pattern.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(pattern.size(), " bytes are more than the limit of ", kMaxBytes));
  }
  return Parser(pattern).Parse();
}

}  // namespace trine::constraint
