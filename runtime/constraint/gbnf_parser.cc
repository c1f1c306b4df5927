#include "runtime/constraint/gbnf_parser.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxBytes = 4 << 20;
constexpr int kMaxNesting = 200;
constexpr int kMaxRepeats = 8;  // of one another: a*+?
constexpr int64_t kMaxRepeat = 1 << 20;
constexpr size_t kMaxParts = 1 << 18;   // texts, classes, names, groups and alternatives
constexpr size_t kMaxRanges = 1 << 12;  // of characters in one class

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

absl::string_view View(std::string_view s) { return {s.data(), s.size()}; }

// Recursive descent. Every method that returns nothing has set error_.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Grammar> Parse() {
    SkipSpace(true);
    while (error_.ok() && at_ < text_.size()) ParseRule();
    if (!error_.ok()) return error_;
    for (const Reference& reference : references_) {
      if (grammar_.rules[static_cast<size_t>(reference.rule)].body == nullptr) {
        at_ = reference.at;
        Fail(absl::StrCat("the rule '", grammar_.rules[static_cast<size_t>(reference.rule)].name,
                          "' is not defined"));
        return error_;
      }
    }
    const auto root = by_name_.find("root");
    if (root == by_name_.end()) {
      return absl::InvalidArgumentError("grammar: there is no rule called root");
    }
    grammar_.root = root->second;
    return std::move(grammar_);
  }

 private:
  struct Reference {
    int32_t rule;
    size_t at;
  };

  std::nullptr_t Fail(std::string_view what) {
    if (!error_.ok()) return nullptr;
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      } else {
        ++column;
      }
    }
    error_ = absl::InvalidArgumentError(
        absl::StrCat("grammar, line ", line, ", column ", column, ": ", View(what)));
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

  // Spaces and comments; the ends of lines too where a rule can't end.
  void SkipSpace(bool over_lines) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n' && text_[at_ + 1] != '\r') ++at_;
      } else if (c == '\n' || c == '\r') {
        if (!over_lines) return;
      } else if (c != ' ' && c != '\t') {
        return;
      }
    }
  }

  std::string_view ParseName() {
    const size_t begin = at_;
    while (IsNameCharacter(Peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  int32_t RuleByName(std::string_view name) {
    const auto [it, added] =
        by_name_.try_emplace(std::string(name), static_cast<int32_t>(grammar_.rules.size()));
    if (added) grammar_.rules.push_back({std::string(name), nullptr});
    return it->second;
  }

  void ParseRule() {
    const size_t begin = at_;
    const std::string_view name = ParseName();
    if (name.empty()) {
      Fail("a rule's name is expected");
      return;
    }
    SkipSpace(false);
    if (!Take("::=")) {
      Fail("'::=' is expected");
      return;
    }
    const int32_t rule = RuleByName(name);
    if (grammar_.rules[static_cast<size_t>(rule)].body != nullptr) {
      at_ = begin;
      Fail(absl::StrCat("the rule '", View(name), "' is defined twice"));
      return;
    }
    SkipSpace(true);
    ExprPtr body = ParseChoice(0);
    if (body == nullptr) return;
    if (at_ < text_.size() && Peek() != '\n' && Peek() != '\r') {
      Fail("the end of the rule is expected");
      return;
    }
    grammar_.rules[static_cast<size_t>(rule)].body = std::move(body);
    SkipSpace(true);
  }

  // Alternatives may go on in the next line, where it begins with '|'.
  bool TakeBar(bool nested) {
    const size_t before = at_;
    SkipSpace(true);
    if (Take("|")) return true;
    if (!nested) at_ = before;
    return false;
  }

  ExprPtr ParseChoice(int nesting) {
    if (nesting > kMaxNesting) return Fail(absl::StrCat("nested more than ", kMaxNesting, " deep"));
    std::vector<ExprPtr> parts;
    do {
      SkipSpace(true);
      ExprPtr part = ParseSequence(nesting);
      if (part == nullptr) return nullptr;
      parts.push_back(std::move(part));
    } while (TakeBar(nesting > 0));
    return Choice(std::move(parts));
  }

  // An empty alternative must not take the next rule's name for a reference.
  bool AtRuleStart() const {
    size_t i = at_;
    while (i < text_.size() && IsNameCharacter(text_[i])) ++i;
    while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t')) ++i;
    return i > at_ && text_.substr(i, 3) == "::=";
  }

  bool CountPart() {
    if (++parts_ <= kMaxParts) return true;
    Fail(absl::StrCat("the grammar has more than ", kMaxParts, " parts"));
    return false;
  }

  ExprPtr ParseSequence(int nesting) {
    std::vector<ExprPtr> parts;
    while (at_ < text_.size()) {
      ExprPtr part;
      if (Peek() == '"') {
        part = ParseLiteral();
      } else if (Peek() == '[') {
        part = ParseClass();
      } else if (Take(".")) {
        part = Character(CodePointSet::All());
      } else if (Take("(")) {
        part = ParseChoice(nesting + 1);
        if (part != nullptr && !Take(")")) return Fail("')' is expected");
      } else if (IsNameCharacter(Peek()) && !AtRuleStart()) {
        references_.push_back({0, at_});
        references_.back().rule = RuleByName(ParseName());
        part = RuleRef(references_.back().rule);
      } else {
        break;
      }
      for (int n = 0; part != nullptr && IsRepeat(Peek()); ++n) {
        if (n == kMaxRepeats) return Fail("too many repetitions of a repetition");
        part = ParseRepeat(std::move(part));
      }
      if (part == nullptr) return nullptr;
      parts.push_back(std::move(part));
      if (!CountPart()) return nullptr;
      SkipSpace(nesting > 0);
    }
    if (!CountPart()) return nullptr;
    return Sequence(std::move(parts));
  }

  static bool IsRepeat(char c) { return c == '*' || c == '+' || c == '?' || c == '{'; }

  ExprPtr ParseRepeat(ExprPtr part) {
    if (Take("*")) return Repeat(std::move(part), 0, Expr::kNoLimit);
    if (Take("+")) return Repeat(std::move(part), 1, Expr::kNoLimit);
    if (Take("?")) return Optional(std::move(part));
    Take("{");
    SkipSpace(false);
    const std::optional<int64_t> min = ParseCount();
    if (!min.has_value()) return nullptr;
    int64_t max = *min;
    SkipSpace(false);
    if (Take(",")) {
      SkipSpace(false);
      max = Expr::kNoLimit;
      if (Peek() != '}') {
        const std::optional<int64_t> given = ParseCount();
        if (!given.has_value()) return nullptr;
        max = *given;
        if (max < *min)
          return Fail(absl::StrCat("{", *min, ",", max, "}: the most is below the least"));
      }
      SkipSpace(false);
    }
    if (!Take("}")) return Fail("'}' is expected");
    return Repeat(std::move(part), *min, max);
  }

  std::optional<int64_t> ParseCount() {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(Peek()))) {
      Fail("a count is expected");
      return std::nullopt;
    }
    int64_t count = 0;
    while (absl::ascii_isdigit(static_cast<unsigned char>(Peek()))) {
      count = count * 10 + (Peek() - '0');
      if (count > kMaxRepeat) {
        Fail(absl::StrCat("a count above ", kMaxRepeat));
        return std::nullopt;
      }
      ++at_;
    }
    return count;
  }

  ExprPtr ParseLiteral() {
    const size_t begin = at_++;
    std::string bytes;
    while (Peek() != '"') {
      if (at_ >= text_.size() || Peek() == '\n') {
        at_ = begin;
        return Fail("the text that begins here has no end");
      }
      const std::optional<uint32_t> c = ParseCharacter();
      if (!c.has_value()) return nullptr;
      AppendUtf8(*c, &bytes);
    }
    ++at_;
    return Text(std::move(bytes));
  }

  ExprPtr ParseClass() {
    const size_t begin = at_++;
    const bool negated = Take("^");
    CodePointSet set;
    while (Peek() != ']') {
      if (at_ >= text_.size() || Peek() == '\n') {
        at_ = begin;
        return Fail("the class that begins here has no end");
      }
      const size_t low_at = at_;
      const std::optional<uint32_t> low = ParseCharacter();
      if (!low.has_value()) return nullptr;
      uint32_t high = *low;
      if (Peek() == '-' && Peek(1) != ']' && at_ + 1 < text_.size()) {
        ++at_;
        const std::optional<uint32_t> end = ParseCharacter();
        if (!end.has_value()) return nullptr;
        high = *end;
      }
      if (high < *low) {
        at_ = low_at;
        return Fail("the range ends before it begins");
      }
      set.Add(*low, high);
      if (set.ranges().size() > kMaxRanges) {
        return Fail(absl::StrCat("a class of more than ", kMaxRanges, " ranges"));
      }
    }
    ++at_;
    if (negated) set = set.Complement();
    if (set.empty()) {
      at_ = begin;
      return Fail("the class has no character");
    }
    return Character(std::move(set));
  }

  std::optional<uint32_t> ParseHex(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const auto c = static_cast<unsigned char>(Peek());
      if (!absl::ascii_isxdigit(c)) {
        Fail(absl::StrCat(digits, " hexadecimal digits are expected"));
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

  std::optional<uint32_t> ParseCharacter() {
    if (!Take("\\")) {
      const Utf8Step step = NextUtf8(text_.substr(at_));
      if (step.kind != Utf8Step::Kind::kCharacter) {
        Fail("this is not valid UTF-8");
        return std::nullopt;
      }
      at_ += step.bytes;
      return step.code_point;
    }
    const char c = Peek();
    ++at_;
    switch (c) {
      case 'x':
        return ParseHex(2);
      case 'u':
        return ParseHex(4);
      case 'U':
        return ParseHex(8);
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<uint32_t>(c);
      default:
        at_ -= 2;
        Fail(
            "an escape that isn't known: \\t \\r \\n \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH "
            "\\UHHHHHHHH are");
        return std::nullopt;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  absl::Status error_;
  Grammar grammar_;
  size_t parts_ = 0;
  absl::flat_hash_map<std::string, int32_t> by_name_;
  std::vector<Reference> references_;
};

}  // namespace

absl::StatusOr<Grammar> ParseGbnf(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("grammar: ", text.size(), " bytes are more than the limit of ", kMaxBytes));
  }
  return Parser(text).Parse();
}

}  // namespace trine::constraint
