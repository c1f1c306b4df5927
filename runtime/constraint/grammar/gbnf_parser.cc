#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/invalid.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/grammar/text_parser.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxGbnfBytes = 4 << 20;
constexpr int kMaxGbnfNesting = 200;
constexpr int kMaxGbnfRepeats = 8;  // repetitions of a repetition: a*+?
constexpr int64_t kMaxGbnfRepeat = 1 << 20;
constexpr size_t kMaxParts = 1 << 18;   // texts, classes, names, groups and alternatives
constexpr size_t kMaxRanges = 1 << 12;  // ranges of characters in one class

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

class GbnfParser : TextParser {
 public:
  explicit GbnfParser(std::string_view text) : TextParser(text) {}

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

  Nothing Fail(std::string_view what) override {
    if (!error_.ok()) return {};
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      } else {
        ++column;
      }
    }
    error_ = Invalid("grammar, line ", line, ", column ", column, ": ", AbslView(what));
    return {};
  }

  // Skips spaces and comments, and with `over_lines` (where a rule can't end) also line ends.
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
      Fail(absl::StrCat("the rule '", AbslView(name), "' is defined twice"));
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

  // Takes a '|', which may also begin the next line.
  bool TakeBar(bool nested) {
    const size_t before = at_;
    SkipSpace(true);
    if (Take("|")) return true;
    if (!nested) at_ = before;
    return false;
  }

  ExprPtr ParseChoice(int nesting) {
    if (nesting > kMaxGbnfNesting)
      return Fail(absl::StrCat("nested more than ", kMaxGbnfNesting, " deep"));
    std::vector<ExprPtr> parts;
    do {
      SkipSpace(true);
      ExprPtr part = ParseSequence(nesting);
      if (part == nullptr) return nullptr;
      parts.push_back(std::move(part));
    } while (TakeBar(nesting > 0));
    return Choice(std::move(parts));
  }

  // Returns whether a rule begins here. An empty alternative must not take the next rule's name for
  // a reference.
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
        if (n == kMaxGbnfRepeats) return Fail("too many repetitions of a repetition");
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
    const std::optional<int64_t> min = ParseCount(kMaxGbnfRepeat);
    if (!min.has_value()) return nullptr;
    int64_t max = *min;
    SkipSpace(false);
    if (Take(",")) {
      SkipSpace(false);
      max = Expr::kNoLimit;
      if (Peek() != '}') {
        const std::optional<int64_t> given = ParseCount(kMaxGbnfRepeat);
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

  std::optional<uint32_t> ParseCharacter() {
    if (!Take("\\")) return ParseUtf8();
    const char c = Peek();
    ++at_;
    if (const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; digits > 0) {
      return ParseHex(digits, absl::StrCat(digits, " hexadecimal digits are expected"));
    }
    constexpr std::string_view kLetters = "trn\\\"[]-^", kMeant = "\t\r\n\\\"[]-^";
    if (const size_t i = kLetters.find(c); i != kLetters.npos) {
      return static_cast<uint32_t>(kMeant[i]);
    }
    at_ -= 2;
    return Fail(
        "an escape that isn't known: \\t \\r \\n \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH "
        "\\UHHHHHHHH are");
  }

  Grammar grammar_;
  size_t parts_ = 0;
  absl::flat_hash_map<std::string, int32_t> by_name_;
  std::vector<Reference> references_;
};

}  // namespace

absl::StatusOr<Grammar> ParseGbnf(std::string_view text) {
  if (text.size() > kMaxGbnfBytes) {
    return Invalid("grammar: ", text.size(), " bytes are more than the limit of ", kMaxGbnfBytes);
  }
  return GbnfParser(text).Parse();
}

}  // namespace trine::constraint
