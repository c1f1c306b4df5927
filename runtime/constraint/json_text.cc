#include "runtime/constraint/json_text.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

namespace trine::constraint {
namespace {

std::string Escape(uint32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return absl::StrFormat("\\u%04x", c);
  }
}

}  // namespace

ExprPtr JsonCharacter(const CodePointSet& set) {
  static const auto* const escaped = new CodePointSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  std::vector<ExprPtr> parts;
  CodePointSet plain = set.Intersect(escaped->Complement());
  if (!plain.empty()) parts.push_back(Character(std::move(plain)));
  const CodePointSet special = set.Intersect(*escaped);
  for (const CodePointRange& r : special.ranges()) {
    for (uint32_t c = r.low; c <= r.high; ++c) parts.push_back(Text(Escape(c)));
  }
  return Choice(std::move(parts));
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
