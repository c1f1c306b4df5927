#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/invalid.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/grammar/text_parser.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxRegexBytes = 1 << 16;
constexpr int kMaxRegexNesting = 100;
constexpr int64_t kMaxRegexRepeat = 10000;

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

class RegexParser : TextParser {
 public:
  explicit RegexParser(std::string_view text) : TextParser(text) {}

  absl::StatusOr<ExprPtr> Parse() {
    ExprPtr expr = ParseChoice(0);
    if (error_.ok() && at_ < text_.size()) Fail("')' without '('");
    if (!error_.ok()) return error_;
    return expr;
  }

 private:
  Nothing Fail(std::string_view what) override {
    if (error_.ok()) {
      error_ = Invalid(absl::string_view(what.data(), what.size()), ", at character ", at_ + 1);
    }
    return {};
  }

  static ExprPtr Anything() { return Repeat(Character(CodePointSet::All()), 0, Expr::kNoLimit); }

  ExprPtr ParseChoice(int nesting) {
    if (nesting > kMaxRegexNesting) return Fail("nested too deep");
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
      std::optional<int64_t> count = ParseCount(kMaxRegexRepeat);
      if (!count.has_value()) return nullptr;
      min = max = *count;
      if (Take(",")) {
        count = Peek() == '}' ? Expr::kNoLimit : ParseCount(kMaxRegexRepeat);
        if (!count.has_value()) return nullptr;
        max = *count;
      }
      if (!Take("}")) return Fail("'}' is expected");
      if (max != Expr::kNoLimit && max < min) return Fail("the most is below the least");
    } else {
      return part;
    }
    Take("?");  // reluctant: matches the same texts
    return Repeat(std::move(part), min, max);
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

  // Parses one character, or an escape such as \d that stands for several.
  std::optional<CodePointSet> ParseCharacters(bool in_class) {
    std::optional<uint32_t> one;
    if (Take("\\")) {
      const char c = Peek();
      ++at_;
      if (c == 'd' || c == 'D') return c == 'd' ? Digits() : Digits().Complement();
      if (c == 'w' || c == 'W') return c == 'w' ? WordCharacters() : WordCharacters().Complement();
      if (c == 's' || c == 'S') return c == 's' ? Spaces() : Spaces().Complement();
      one = ParseEscape(c, in_class);
    } else {
      one = ParseUtf8();
    }
    if (!one.has_value()) return std::nullopt;
    return CodePointSet{{*one, *one}};
  }

  std::optional<uint32_t> ParseEscape(char c, bool in_class) {
    constexpr std::string_view kLetters = "tnrfv", kMeant = "\t\n\r\f\v";
    constexpr char kWrong[] = "hexadecimal digits are expected";
    if (const size_t i = kLetters.find(c); i != kLetters.npos) {
      return static_cast<uint32_t>(kMeant[i]);
    }
    if (c == 'x') return ParseHex(2, kWrong);
    if (c == 'u' && Take("{")) {
      const size_t end = text_.find('}', at_);
      const size_t digits = end == text_.npos ? 0 : end - at_;
      const auto value = ParseHex(digits >= 1 && digits <= 6 ? digits : 1, kWrong);
      Take("}");
      return value;
    }
    if (c == 'u') return ParseHex(4, kWrong);
    if (c == '0' && !AtDigit()) return 0;
    if (c == 'b' && in_class) return '\b';
    if (absl::ascii_ispunct(static_cast<unsigned char>(c))) return static_cast<uint32_t>(c);
    at_ -= 1;
    return Fail(
        absl::StrCat("\\", at_ < text_.size() ? std::string(1, c) : "", " is not supported"));
  }
};

}  // namespace

absl::StatusOr<ExprPtr> ParseRegex(std::string_view pattern) {
  if (pattern.size() > kMaxRegexBytes) {
    return Invalid(pattern.size(), " bytes are more than the limit of ", kMaxRegexBytes);
  }
  return RegexParser(pattern).Parse();
}

}  // namespace trine::constraint
