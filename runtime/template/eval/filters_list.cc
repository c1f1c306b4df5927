#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/eval/operators.h"
#include "runtime/template/parse/ast.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/print.h"
#include "runtime/template/values/text.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;
using Result = absl::StatusOr<Value>;

// Returns the member at a path ("details.0.name") of an item; undefined if there is none.
Result Member(const Value& item, std::string_view path, Budget& budget) {
  if (absl::Status s = budget.Work(static_cast<int64_t>(path.size())); !s.ok()) return s;
  Value value = item;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('.', at), path.size());
    const absl::string_view part(path.data() + at, end - at);
    at = end + 1;
    const Value* found = nullptr;
    int64_t index = 0;
    if (value.is(Kind::kDict)) {
      found = value.dict().Find({part.data(), part.size()});
    } else if (value.is(Kind::kNamespace)) {
      found = value.members().members.Find({part.data(), part.size()});
    } else if (value.is(Kind::kList) && absl::SimpleAtoi(part, &index) && index >= 0 &&
               index < value.size()) {
      found = &value.list()[static_cast<size_t>(index)];
    }
    if (found == nullptr) return Value();
    const Value next = *found;  // a copy, because `found` is inside `value`
    value = next;
  }
  return value;
}

// Returns the path of a member as sort, map and unique take it: a string, or the index of an item.
absl::StatusOr<std::string> MemberPath(const Value& given) {
  if (given.is(Kind::kString)) return given.text().bytes();
  if (given.is(Kind::kInt)) return Words(given.integer());
  return Wrong("the argument attribute must be a string");
}

Result ListFilter(const Value& operand, const Arguments&, Budget& budget) {
  return ToList(operand, budget);
}

using ValueList = std::vector<Value>;

// Makes a filter of a function that takes the operand's items.
template <Result (*kFunction)(const ValueList&, const Arguments&, Budget&)>
Result OfItems(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto list = ToList(operand, budget);
  return list.ok() ? kFunction(list->list(), arguments, budget) : list;
}

Result First(const ValueList& items, const Arguments&, Budget&) {
  return items.empty() ? Value() : items.front();
}

Result Last(const ValueList& items, const Arguments&, Budget&) {
  return items.empty() ? Value() : items.back();
}

Result Reverse(const Value& operand, const Arguments&, Budget& budget) {
  if (operand.is(Kind::kString)) return Slice(operand, Value(), Value(), Value::Int(-1), budget);
  const auto list = ToList(operand, budget);
  if (!list.ok()) return list;
  return budget.OfList({list->list().rbegin(), list->list().rend()});
}

Result Join(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto separator = TextArgument(arguments, 0, "d");
  if (!separator.ok()) return separator.status();
  const Value* attribute = arguments.Find(1, "attribute");
  const bool by_member = attribute != nullptr && !attribute->none();
  const auto path = by_member ? MemberPath(*attribute) : "";
  if (!path.ok()) return path.status();
  const auto list = ToList(operand, budget);
  if (!list.ok()) return list;
  Text out;
  for (size_t i = 0; i < list->list().size(); ++i) {
    const size_t before = out.memory();
    if (i > 0 && *separator != nullptr) out.Append(**separator);
    const Value& whole = list->list()[i];
    const Result item = by_member ? Member(whole, *path, budget) : whole;
    if (!item.ok()) return item;
    if (absl::Status s = AppendPrinted(*item, budget, &out); !s.ok()) return s;
    if (absl::Status s = budget.Grown(out, before); !s.ok()) return s;
  }
  return budget.String(std::move(out));
}

Result Sort(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto reverse = BoolArgument(arguments, 0, "reverse", false);
  if (!reverse.ok()) return reverse.status();
  const auto case_sensitive = BoolArgument(arguments, 1, "case_sensitive", false);
  if (!case_sensitive.ok()) return case_sensitive.status();
  const Value* attribute = arguments.Find(2, "attribute");
  const bool by_member = attribute != nullptr && !attribute->none();
  const auto path = by_member ? MemberPath(*attribute) : "";
  if (!path.ok()) return path.status();
  const auto list = ToList(operand, budget);
  if (!list.ok()) return list;
  return Sorted(
      list->list(),
      [&](const Value& item) { return by_member ? Member(item, *path, budget) : Result(item); },
      *case_sensitive, *reverse, budget);
}

Result Unique(const ValueList& items, const Arguments&, Budget& budget) {
  ValueList unique;
  for (const Value& item : items) {
    bool seen = false;
    for (const Value& other : unique) {
      const auto equal = Equal(item, other, budget);
      if (!equal.ok()) return equal.status();
      seen = seen || *equal;
    }
    if (!seen) unique.push_back(item);
  }
  return budget.OfList(std::move(unique));
}

// Returns the smallest (kSign -1) or largest (kSign 1) item; undefined for an empty list.
template <int kSign>
Result Extreme(const ValueList& items, const Arguments&, Budget& budget) {
  Value best;
  for (const Value& item : items) {
    if (best.undefined()) {
      best = item;
      continue;
    }
    const auto order = Compare(item, best, false, budget);
    if (!order.ok()) return order.status();
    if (*order * kSign > 0) best = item;
  }
  return best;
}

Result Sum(const ValueList& items, const Arguments&, Budget& budget) {
  Value sum = Value::Int(0);
  for (const Value& item : items) {
    auto next = Apply(Operator::kAdd, sum, item, budget);
    if (!next.ok()) return next;
    sum = *std::move(next);
  }
  return sum;
}

// Returns the arguments without `names`, which may also be given by position: the arguments of the
// filter or test that is called.
absl::StatusOr<Arguments> Without(std::initializer_list<std::string_view> names,
                                  const Arguments& arguments, Budget& budget) {
  const auto taken = [&names](const Text& name) {
    return std::find(names.begin(), names.end(), std::string_view(name.bytes())) != names.end();
  };
  const size_t n = arguments.positional.size() + arguments.named.size();
  int64_t bytes = static_cast<int64_t>(n * sizeof(arguments.named[0]));
  for (const auto& [name, value] : arguments.named) bytes += static_cast<int64_t>(name.memory());
  if (absl::Status s = budget.Allocate(bytes); !s.ok()) return s;
  Arguments rest;
  for (size_t i = names.size(); i < arguments.positional.size(); ++i) {
    rest.positional.push_back(arguments.positional[i]);
  }
  for (const auto& [name, value] : arguments.named) {
    if (!taken(name)) rest.named.emplace_back(name, value);
  }
  return rest;
}

Result Map(const ValueList& items, const Arguments& arguments, Budget& budget) {
  const Value* attribute = arguments.FindNamed("attribute");
  const Value* otherwise = arguments.FindNamed("default");
  const auto path = attribute == nullptr ? "" : MemberPath(*attribute);
  if (!path.ok()) return path.status();
  const auto filter = attribute != nullptr ? nullptr : NeededText(arguments, 0, "filter");
  if (!filter.ok()) return filter.status();
  const auto rest = Without({"filter"}, arguments, budget);
  if (!rest.ok()) return rest.status();
  ValueList mapped;
  for (const Value& item : items) {
    if (attribute != nullptr) {
      const Result member = Member(item, *path, budget);
      if (!member.ok()) return member;
      mapped.push_back(member->undefined() && otherwise != nullptr ? *otherwise : *member);
      continue;
    }
    auto result = ApplyFilter((*filter)->bytes(), item, *rest, budget);
    if (!result.ok()) return result;
    mapped.push_back(*std::move(result));
  }
  return budget.OfList(std::move(mapped));
}

// select, reject, selectattr and rejectattr. Without a test, true values are chosen.
template <bool kKeep, bool kMember>
Result Choose(const ValueList& items, const Arguments& arguments, Budget& budget) {
  constexpr size_t kTestAt = kMember ? 1 : 0;
  const auto member = kMember ? NeededText(arguments, 0, "attribute") : nullptr;
  if (!member.ok()) return member.status();
  const auto test = TextArgument(arguments, kTestAt, "test");
  if (!test.ok()) return test.status();
  const auto rest = kMember ? Without({"attribute", "test"}, arguments, budget)
                            : Without({"test"}, arguments, budget);
  if (!rest.ok()) return rest.status();
  ValueList chosen;
  for (const Value& item : items) {
    const Result tried = kMember ? Member(item, (*member)->bytes(), budget) : item;
    if (!tried.ok()) return tried;
    const auto holds =
        *test == nullptr ? tried->Truthy() : ApplyTest((*test)->bytes(), *tried, *rest, budget);
    if (!holds.ok()) return holds.status();
    if (*holds == kKeep) chosen.push_back(item);
  }
  return budget.OfList(std::move(chosen));
}

constexpr NamedOperation kListFilters[] = {
    {"first", OfItems<First>},
    {"join", Join},
    {"last", OfItems<Last>},
    {"list", ListFilter},
    {"map", OfItems<Map>},
    {"max", OfItems<Extreme<1>>},
    {"min", OfItems<Extreme<-1>>},
    {"reject", OfItems<Choose<false, false>>},
    {"rejectattr", OfItems<Choose<false, true>>},
    {"reverse", Reverse},
    {"select", OfItems<Choose<true, false>>},
    {"selectattr", OfItems<Choose<true, true>>},
    {"sort", Sort},
    {"sum", OfItems<Sum>},
    {"unique", OfItems<Unique>},
};

}  // namespace

absl::StatusOr<Value> ToList(const Value& value, Budget& budget) {
  if (value.is(Kind::kList)) return value;
  if (value.is(Kind::kDict)) return Keys(value, {}, budget);
  if (!value.is(Kind::kString)) return Wrong(KindName(value.kind()), " can't be gone through");
  std::vector<Value> characters;
  const Text& text = value.text();
  for (size_t at = 0; at < text.size();) {
    const size_t end = Forward(text.bytes(), at, 1);
    auto character = budget.String(text.Slice(at, end));
    if (!character.ok()) return character;
    characters.push_back(*std::move(character));
    at = end;
  }
  return budget.OfList(std::move(characters));
}

Operation FindListFilter(std::string_view name) { return FindIn(kListFilters, name); }

}  // namespace trine::jinja
