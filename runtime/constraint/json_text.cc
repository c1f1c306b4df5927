#include "runtime/constraint/json_text.h"

#include <utility>
#include <vector>

namespace trine::constraint {
namespace {

// The letter of a short escape, such as n for a line end; 0 where there is none.
char ShortEscape(uint32_t c) {
  switch (c) {
    case '"':
    case '\\':
      return static_cast<char>(c);
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return '\0';
  }
}

uint32_t HexDigit(uint32_t value) { return value < 10 ? '0' + value : 'a' + value - 10; }

}  // namespace

ExprPtr JsonCharacter(const CodePointSet& set) {
  static const auto* const escaped = new CodePointSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const CodePointSet plain = set.Intersect(escaped->Complement());
  const CodePointSet special = set.Intersect(*escaped);
  // Escapes share their beginnings: a long string repeats this many times.
  CodePointSet letters, low_controls, high_controls;
  for (const CodePointRange& r : special.ranges()) {
    for (uint32_t c = r.low; c <= r.high; ++c) {
      const uint32_t digit = HexDigit(c % 16);
      if (const char letter = ShortEscape(c); letter != '\0') {
        letters.Add(static_cast<uint32_t>(letter), static_cast<uint32_t>(letter));
      } else {
        (c < 16 ? low_controls : high_controls).Add(digit, digit);
      }
    }
  }
  std::vector<ExprPtr> numbers, escapes, all;
  if (!low_controls.empty()) numbers.push_back(Sequence({Text("0"), Character(low_controls)}));
  if (!high_controls.empty()) numbers.push_back(Sequence({Text("1"), Character(high_controls)}));
  if (!letters.empty()) escapes.push_back(Character(std::move(letters)));
  if (!numbers.empty()) escapes.push_back(Sequence({Text("u00"), Choice(std::move(numbers))}));
  if (!plain.empty()) all.push_back(Character(plain));
  if (!escapes.empty()) all.push_back(Sequence({Text("\\"), Choice(std::move(escapes))}));
  return Choice(std::move(all));
}

ExprPtr JsonString(int64_t min, int64_t max) {
  return Sequence({Text("\""), Repeat(JsonCharacter(CodePointSet::All()), min, max), Text("\"")});
}

ExprPtr JsonString(const CharDfa& dfa) {
  return Sequence({Text("\""), dfa.ToExpr(JsonCharacter), Text("\"")});
}

ExprPtr JsonComma() { return Sequence({Text(","), Optional(Text(" "))}); }
ExprPtr JsonColon() { return Sequence({Text(":"), Optional(Text(" "))}); }

}  // namespace trine::constraint
