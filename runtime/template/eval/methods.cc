#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/eval/operators.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/text.h"

namespace trine::jinja {
namespace {

absl::Status MustBe(std::string_view name, Value::Kind wanted, const Value& given) {
  return Wrong("the argument ", name, " must be ", KindName(wanted), ", not ",
               KindName(given.kind()));
}

// Returns the argument, which must be of this kind; null if it was not given or is none.
absl::StatusOr<const Value*> FindKind(const Arguments& arguments, size_t place,
                                      std::string_view name, Value::Kind kind) {
  const Value* value = arguments.Find(place, name);
  if (value == nullptr || value->none()) return nullptr;
  if (!value->is(kind)) return MustBe(name, kind, *value);
  return value;
}

using Kind = Value::Kind;
using Result = absl::StatusOr<Value>;

template <Side kSide>
Result StripMethod(const Value& self, const Arguments& arguments, Budget& budget) {
  const auto characters = TextArgument(arguments, 0, "chars");
  if (!characters.ok()) return characters.status();
  if (*characters == nullptr) return budget.String(Strip(self.text(), kSide, nullptr));
  const std::string_view set = (*characters)->bytes();
  if (absl::Status s = budget.Work(self.size() * static_cast<int64_t>(set.size())); !s.ok()) {
    return s;
  }
  return budget.String(Strip(self.text(), kSide, &set));
}

template <Text (*kMap)(const Text&)>
Result MapMethod(const Value& self, const Arguments&, Budget& budget) {
  return budget.String(kMap(self.text()));
}

// Splits at white space and drops it. Keeps white space within the rest after the last split.
absl::StatusOr<std::vector<Value>> SplitAtSpace(const Text& text, int64_t limit, Budget& budget) {
  std::vector<Value> parts;
  const std::string_view bytes = text.bytes();
  for (size_t at = LeadingSpace(bytes); at < bytes.size();) {
    size_t end = bytes.size();
    if (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
      end = at;
      while (end < bytes.size() && LeadingSpace(bytes.substr(end, 4)) == 0) ++end;
    }
    auto part = budget.String(text.Slice(at, end));
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
    at = end + LeadingSpace(bytes.substr(end));
  }
  return parts;
}

absl::StatusOr<std::vector<Value>> SplitAt(const Text& text, std::string_view separator,
                                           int64_t limit, Budget& budget) {
  std::vector<Value> parts;
  for (size_t at = 0;;) {
    const bool last = limit >= 0 && static_cast<int64_t>(parts.size()) >= limit;
    const size_t found = last ? std::string_view::npos : Find(text.bytes(), separator, at);
    const size_t end = std::min(found, text.size());
    auto part = budget.String(text.Slice(at, end));
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
    if (found == std::string_view::npos) return parts;
    at = found + separator.size();
  }
}

Result Split(const Value& self, const Arguments& arguments, Budget& budget) {
  const auto separator = TextArgument(arguments, 0, "sep");
  if (!separator.ok()) return separator.status();
  const auto limit = IntArgument(arguments, 1, "maxsplit", -1);
  if (!limit.ok()) return limit.status();
  if (*separator != nullptr && (*separator)->empty()) return Wrong("split() at nothing");
  auto parts = *separator == nullptr ? SplitAtSpace(self.text(), *limit, budget)
                                     : SplitAt(self.text(), (*separator)->bytes(), *limit, budget);
  if (!parts.ok()) return parts.status();
  return budget.OfList(*std::move(parts));
}

Result SplitLines(const Value& self, const Arguments&, Budget& budget) {
  auto parts = SplitAt(self.text(), "\n", -1, budget);
  if (!parts.ok()) return parts.status();
  if (parts->back().size() == 0) parts->pop_back();
  return budget.OfList(*std::move(parts));
}

// The argument is a string, or a list of strings of which one must match.
template <bool (*kMatches)(std::string_view, std::string_view)>
Result Matches(const Value& self, const Arguments& arguments, Budget& budget) {
  constexpr std::string_view kWanted = "startswith() and endswith() take a string or several";
  if (arguments.positional.empty()) return Wrong(kWanted);
  const Value& wanted = arguments.positional[0];
  const std::vector<Value> one = {wanted};
  for (const Value& text : wanted.is(Kind::kList) ? wanted.list() : one) {
    if (!text.is(Kind::kString)) return Wrong(kWanted);
    if (absl::Status s = budget.Work(text.size()); !s.ok()) return s;
    if (kMatches(self.text().bytes(), text.text().bytes())) return Value::Bool(true);
  }
  return Value::Bool(false);
}

bool StartsWith(std::string_view text, std::string_view part) { return text.starts_with(part); }
bool EndsWith(std::string_view text, std::string_view part) { return text.ends_with(part); }

Result Replace(const Value& self, const Arguments& arguments, Budget& budget) {
  const Text& text = self.text();
  const auto old_text = NeededText(arguments, 0, "old");
  if (!old_text.ok()) return old_text.status();
  const auto new_text = NeededText(arguments, 1, "new");
  if (!new_text.ok()) return new_text.status();
  const auto limit = IntArgument(arguments, 2, "count", -1);
  if (!limit.ok()) return limit.status();
  const std::string_view part = (*old_text)->bytes();
  Text out;
  size_t at = 0, copied = 0;
  for (int64_t done = 0; done != *limit; ++done) {
    at = Find(text.bytes(), part, at);
    if (at == std::string_view::npos) break;
    const size_t before = out.memory();
    out.Append(text, copied, at);
    out.Append(**new_text);
    if (absl::Status s = budget.Grown(out, before); !s.ok()) return s;
    copied = at + part.size();
    at = copied;
    if (!part.empty()) continue;
    // The empty text is found before every character and at the end.
    if (at == text.size()) break;
    at = Forward(text.bytes(), at, 1);
  }
  out.Append(text, copied, text.size());
  return budget.String(std::move(out));
}

Result RemovePrefix(const Value& self, const Arguments& arguments, Budget& budget) {
  const auto prefix = NeededText(arguments, 0, "prefix");
  if (!prefix.ok()) return prefix.status();
  if (!self.text().bytes().starts_with((*prefix)->bytes())) return self;
  return budget.String(self.text().Slice((*prefix)->size(), self.text().size()));
}

Result RemoveSuffix(const Value& self, const Arguments& arguments, Budget& budget) {
  const auto suffix = NeededText(arguments, 0, "suffix");
  if (!suffix.ok()) return suffix.status();
  if (!self.text().bytes().ends_with((*suffix)->bytes())) return self;
  return budget.String(self.text().Slice(0, self.text().size() - (*suffix)->size()));
}

Result FindText(const Value& self, const Arguments& arguments, Budget&) {
  const auto part = NeededText(arguments, 0, "sub");
  if (!part.ok()) return part.status();
  const size_t at = Find(self.text().bytes(), (*part)->bytes(), 0);
  if (at == std::string_view::npos) return Value::Int(-1);
  const std::string_view before = std::string_view(self.text().bytes()).substr(0, at);
  return Value::Int(static_cast<int64_t>(CountCharacters(before)));
}

Result Get(const Value& self, const Arguments& arguments, Budget&) {
  const auto key = NeededText(arguments, 0, "key");
  if (!key.ok()) return key.status();
  if (const Value* found = self.dict().Find((*key)->bytes()); found != nullptr) return *found;
  const Value* otherwise = arguments.Find(1, "default");
  return otherwise == nullptr ? Value::None() : *otherwise;
}

Result Values(const Value& self, const Arguments&, Budget& budget) {
  std::vector<Value> values;
  for (const Dict::Entry& entry : self.dict().entries()) values.push_back(entry.value);
  return budget.OfList(std::move(values));
}

constexpr NamedOperation kStringMethods[] = {
    {"capitalize", MapMethod<Capitalize>},
    {"endswith", Matches<EndsWith>},
    {"find", FindText},
    {"lower", MapMethod<Lower>},
    {"lstrip", StripMethod<Side::kLeft>},
    {"removeprefix", RemovePrefix},
    {"removesuffix", RemoveSuffix},
    {"replace", Replace},
    {"rstrip", StripMethod<Side::kRight>},
    {"split", Split},
    {"splitlines", SplitLines},
    {"startswith", Matches<StartsWith>},
    {"strip", StripMethod<Side::kBoth>},
    {"title", MapMethod<Title>},
    {"upper", MapMethod<Upper>},
};
constexpr NamedOperation kDictMethods[] = {
    {"dictsort", SortedItems}, {"get", Get}, {"items", Items}, {"keys", Keys}, {"values", Values},
};

}  // namespace

absl::StatusOr<bool> BoolArgument(const Arguments& arguments, size_t place, std::string_view name,
                                  bool otherwise) {
  const auto value = FindKind(arguments, place, name, Value::Kind::kBool);
  if (!value.ok()) return value.status();
  return *value == nullptr ? otherwise : (*value)->boolean();
}

absl::StatusOr<int64_t> IntArgument(const Arguments& arguments, size_t place, std::string_view name,
                                    int64_t otherwise) {
  const auto value = FindKind(arguments, place, name, Value::Kind::kInt);
  if (!value.ok()) return value.status();
  return *value == nullptr ? otherwise : (*value)->integer();
}

absl::StatusOr<const Text*> TextArgument(const Arguments& arguments, size_t place,
                                         std::string_view name) {
  const auto value = FindKind(arguments, place, name, Value::Kind::kString);
  if (!value.ok()) return value.status();
  return *value == nullptr ? nullptr : &(*value)->text();
}

absl::StatusOr<const Text*> NeededText(const Arguments& arguments, size_t place,
                                       std::string_view name) {
  const auto text = TextArgument(arguments, place, name);
  if (text.ok() && *text == nullptr) return Wrong("the argument ", name, " is missing");
  return text;
}

absl::StatusOr<Value> FindMethod(const Value& object, std::string_view name, Budget& budget) {
  Operation method = nullptr;
  if (object.is(Kind::kString)) method = FindIn(kStringMethods, name);
  if (object.is(Kind::kDict)) method = FindIn(kDictMethods, name);
  if (method != nullptr) {
    const auto call = [object, method](Budget& paying, const Arguments& arguments) -> Result {
      if (absl::Status s = paying.Work(object.size() + arguments.size()); !s.ok()) return s;
      return method(object, arguments, paying);
    };
    return budget.OfFunction(call, 1 + object.height());
  }
  if (name == "length" && object.is(Kind::kList)) return Value::Int(object.size());
  if (name == "length" && object.is(Kind::kString)) {
    if (absl::Status s = budget.Work(object.size()); !s.ok()) return s;
    return Value::Int(static_cast<int64_t>(CountCharacters(object.text().bytes())));
  }
  return Value();
}

absl::StatusOr<Value> Items(const Value& dict, const Arguments&, Budget& budget) {
  std::vector<Value> items;
  for (const Dict::Entry& entry : dict.dict().entries()) {
    auto key = budget.String(entry.key);
    if (!key.ok()) return key;
    auto item = budget.OfList({*std::move(key), entry.value});
    if (!item.ok()) return item;
    items.push_back(*std::move(item));
  }
  return budget.OfList(std::move(items));
}

absl::StatusOr<Value> Keys(const Value& dict, const Arguments&, Budget& budget) {
  std::vector<Value> keys;
  for (const Dict::Entry& entry : dict.dict().entries()) {
    auto key = budget.String(entry.key);
    if (!key.ok()) return key;
    keys.push_back(*std::move(key));
  }
  return budget.OfList(std::move(keys));
}

absl::StatusOr<Value> SortedItems(const Value& dict, const Arguments& arguments, Budget& budget) {
  const auto case_sensitive = BoolArgument(arguments, 0, "case_sensitive", false);
  if (!case_sensitive.ok()) return case_sensitive.status();
  const auto by = TextArgument(arguments, 1, "by");
  if (!by.ok()) return by.status();
  const auto reverse = BoolArgument(arguments, 2, "reverse", false);
  if (!reverse.ok()) return reverse.status();
  if (*by != nullptr && (*by)->bytes() != "key" && (*by)->bytes() != "value") {
    return Wrong("the argument by must be \"key\" or \"value\"");
  }
  const auto items = Items(dict, {}, budget);
  if (!items.ok()) return items;
  const size_t column = *by != nullptr && (*by)->bytes() == "value" ? 1 : 0;
  return Sorted(
      items->list(), [&](const Value& item) -> Result { return item.list()[column]; },
      *case_sensitive, *reverse, budget);
}

}  // namespace trine::jinja
