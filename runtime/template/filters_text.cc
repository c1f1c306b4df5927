#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/template/arguments.h"
#include "runtime/template/characters.h"
#include "runtime/template/filters.h"
#include "runtime/template/methods.h"
#include "runtime/template/print.h"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;
using Result = absl::StatusOr<Value>;

constexpr int64_t kMaxIndent = 1000;

absl::Status WantsString(const Value& operand) {
  if (operand.is(Kind::kString)) return absl::OkStatus();
  return Wrong(KindName(operand.kind()), " is no string");
}

// Filters that are methods too.
Result Method(std::string_view name, const Value& operand, const Arguments& arguments,
              Budget& budget) {
  if (absl::Status s = WantsString(operand); !s.ok()) return s;
  const auto method = FindMethod(operand, name, budget);
  if (!method.ok()) return method;
  return method->function()(budget, arguments);
}

Result TrimFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  return Method("strip", operand, arguments, budget);
}
Result UpperFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  return Method("upper", operand, arguments, budget);
}
Result LowerFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  return Method("lower", operand, arguments, budget);
}
Result TitleFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  return Method("title", operand, arguments, budget);
}
Result CapitalizeFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  return Method("capitalize", operand, arguments, budget);
}
Result ReplaceFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  return Method("replace", operand, arguments, budget);
}

Result StringFilter(const Value& operand, const Arguments&, Budget& budget) {
  if (operand.is(Kind::kString)) return operand;
  if (operand.undefined() || operand.none()) {
    return Wrong(KindName(operand.kind()), " is no text");
  }
  auto text = Printed(operand, budget);
  if (!text.ok()) return text.status();
  return budget.String(*std::move(text));
}

absl::StatusOr<JsonStyle> ReadStyle(const Arguments& arguments) {
  constexpr size_t kNamedAlone = static_cast<size_t>(-1);
  JsonStyle style;
  const auto indent = IntArgument(arguments, kNamedAlone, "indent", 0);
  if (!indent.ok()) return indent.status();
  if (*indent < 0 || *indent > kMaxIndent) {
    return Wrong("the indent is not within 0 and ", kMaxIndent);
  }
  style.indent = static_cast<int>(*indent);
  const auto ascii = BoolArgument(arguments, kNamedAlone, "ensure_ascii", false);
  if (!ascii.ok()) return ascii.status();
  style.ascii = *ascii;
  const auto sort_keys = BoolArgument(arguments, kNamedAlone, "sort_keys", false);
  if (!sort_keys.ok()) return sort_keys.status();
  style.sort_keys = *sort_keys;
  const Value* separators = arguments.FindNamed("separators");
  if (separators == nullptr || separators->none()) return style;
  if (!separators->is(Kind::kList) || separators->size() != 2 ||
      !separators->list()[0].is(Kind::kString) || !separators->list()[1].is(Kind::kString)) {
    return Wrong("the separators must be two strings");
  }
  style.custom_separators = true;
  style.item_separator = separators->list()[0].text();
  style.key_separator = separators->list()[1].text();
  return style;
}

Result ToJson(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto style = ReadStyle(arguments);
  if (!style.ok()) return style.status();
  Text text;
  if (absl::Status s = AppendJson(operand, *style, budget, &text); !s.ok()) return s;
  return budget.String(std::move(text));
}

Result Indent(const Value& operand, const Arguments& arguments, Budget& budget) {
  if (absl::Status s = WantsString(operand); !s.ok()) return s;
  const auto width = IntArgument(arguments, 0, "width", 4);
  if (!width.ok()) return width.status();
  const auto first = BoolArgument(arguments, 1, "first", false);
  if (!first.ok()) return first.status();
  const auto blank = BoolArgument(arguments, 2, "blank", false);
  if (!blank.ok()) return blank.status();
  if (*width < 0 || *width > kMaxIndent) {
    return Wrong("the width is not within 0 and ", kMaxIndent);
  }
  const Text& text = operand.text();
  const std::string margin(static_cast<size_t>(*width), ' ');
  Text out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.bytes().find('\n', at), text.size());
    const bool indented = (at > 0 || *first) && (end > at || *blank);
    const size_t before = out.memory();
    if (indented) out.Append(margin, false);
    out.Append(text, at, std::min(end + 1, text.size()));
    if (absl::Status s = budget.Grown(out, before); !s.ok()) return s;
    at = end + 1;
  }
  return budget.String(std::move(out));
}

constexpr FilterEntry kFilters[] = {
    {"capitalize", CapitalizeFilter},
    {"indent", Indent},
    {"lower", LowerFilter},
    {"replace", ReplaceFilter},
    {"string", StringFilter},
    {"title", TitleFilter},
    {"tojson", ToJson},
    {"trim", TrimFilter},
    {"upper", UpperFilter},
};

}  // namespace

Filter FindTextFilter(std::string_view name) {
  for (const FilterEntry& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace trine::jinja
