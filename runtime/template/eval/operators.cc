#include "runtime/template/eval/operators.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/values/print.h"
#include "runtime/template/values/text.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

std::string_view Symbol(Operator op) {
  constexpr std::string_view kSymbols[] = {"+",  "-",  "~", "*",  "/", "//", "%",  "**",
                                           "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<size_t>(op)];
}

absl::Status NotFor(Operator op, const Value& left, const Value& right) {
  return Wrong("\"", Symbol(op), "\" means nothing between ", KindName(left.kind()), " and ",
               KindName(right.kind()));
}

absl::StatusOr<Value> Concatenate(const Value& left, const Value& right, Budget& budget) {
  if (absl::Status s = budget.Work(left.size() + right.size()); !s.ok()) return s;
  Text text;
  if (absl::Status s = AppendPrinted(left, budget, &text); !s.ok()) return s;
  if (absl::Status s = AppendPrinted(right, budget, &text); !s.ok()) return s;
  return budget.String(std::move(text));
}

absl::StatusOr<Value> Repeat(const Text& text, int64_t times, Budget& budget) {
  if (times <= 0 || text.empty()) return Value::String("");
  const int64_t bytes = static_cast<int64_t>(text.memory());
  if (times > budget.limits().memory / bytes) times = budget.limits().memory / bytes + 1;
  if (absl::Status s = budget.Allocate(times * bytes); !s.ok()) return s;
  Text repeated;
  for (int64_t i = 0; i < times; ++i) repeated.Append(text);
  return Value::String(std::move(repeated));
}

absl::StatusOr<bool> Contains(const Value& container, const Value& item, Budget& budget) {
  if (absl::Status s = budget.Work(container.size() + item.size()); !s.ok()) return s;
  if (container.is(Kind::kList)) {
    for (const Value& other : container.list()) {
      const auto equal = Equal(other, item, budget);
      if (!equal.ok() || *equal) return equal;
    }
    return false;
  }
  if (item.is(Kind::kString) && container.is(Kind::kString)) {
    return Find(container.text().bytes(), item.text().bytes(), 0) != std::string_view::npos;
  }
  if (item.is(Kind::kString) && container.is(Kind::kDict)) {
    return container.dict().Find(item.text().bytes()) != nullptr;
  }
  return NotFor(Operator::kIn, item, container);
}

absl::StatusOr<bool> EqualDicts(const Dict& a, const Dict& b, Budget& budget) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const Dict::Entry& entry : a.entries()) {
    const int64_t bytes = static_cast<int64_t>(entry.key.size());
    if (absl::Status s = budget.Work(bytes); !s.ok()) return s;
    const Value* other = b.Find(entry.key.bytes());
    if (other == nullptr) return false;
    const auto equal = Equal(entry.value, *other, budget);
    if (!equal.ok() || !*equal) return equal;
  }
  return true;
}

absl::StatusOr<bool> EqualLists(const std::vector<Value>& a, const std::vector<Value>& b,
                                Budget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto equal = Equal(a[i], b[i], budget);
    if (!equal.ok() || !*equal) return equal;
  }
  return true;
}

bool Ordered(Operator op, int order) {
  if (op == Operator::kLess) return order < 0;
  if (op == Operator::kLessEqual) return order <= 0;
  return op == Operator::kGreater ? order > 0 : order >= 0;
}

// The positions of a slice: from `first` on, by `stride`, up to but without `end`.
struct Places {
  int64_t first, end, stride;

  bool Has(int64_t at) const { return stride > 0 ? at < end : at > end; }
  // Compares without adding, because a huge stride could overflow.
  bool LastAt(int64_t at) const { return stride > 0 ? stride >= end - at : stride <= end - at; }
};

Text SliceText(const Text& text, const Places& places) {
  Text slice;
  if (!places.Has(places.first)) return slice;
  const std::string_view bytes = text.bytes();
  size_t begin = Forward(bytes, 0, places.first);
  if (places.stride == 1) {
    return text.Slice(begin, Forward(bytes, begin, places.end - places.first));
  }
  for (int64_t at = places.first;; at += places.stride) {
    slice.Append(text, begin, Forward(bytes, begin, 1));
    if (places.LastAt(at)) return slice;
    begin = places.stride > 0 ? Forward(bytes, begin, places.stride)
                              : Backward(bytes, begin, -places.stride);
  }
}

struct Keyed {
  Value key;
  const Value* item;
};

// Checks that all keys are numbers or all are strings, so that sorting can't fail half way.
absl::Status CheckKeys(const std::vector<Keyed>& keyed, Budget& budget) {
  for (const Keyed& one : keyed) {
    const auto order = Compare(keyed.front().key, one.key, true, budget);
    if (!order.ok()) return order.status();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> Equal(const Value& a, const Value& b, Budget& budget) {
  if (absl::Status s = budget.Step(); !s.ok()) return s;
  const bool a_missing = a.undefined() || a.none(), b_missing = b.undefined() || b.none();
  if (a_missing || b_missing) return a_missing && b_missing;
  if (IsNumeric(a) && IsNumeric(b)) return CompareNumbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (a.Same(b)) return true;
  switch (a.kind()) {
    case Kind::kString:
      if (absl::Status s = budget.Work(a.size()); !s.ok()) return s;
      return a.text().bytes() == b.text().bytes();
    case Kind::kList:
      return EqualLists(a.list(), b.list(), budget);
    case Kind::kDict:
      return EqualDicts(a.dict(), b.dict(), budget);
    default:
      return false;
  }
}

absl::StatusOr<int> Compare(const Value& a, const Value& b, bool case_sensitive, Budget& budget) {
  if (absl::Status s = budget.Work(a.size() + b.size()); !s.ok()) return s;
  if (IsNumeric(a) && IsNumeric(b)) return CompareNumbers(a, b);
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    // In UTF-8 the order of bytes is the order of code points.
    return case_sensitive ? a.text().bytes().compare(b.text().bytes())
                          : Lower(a.text()).bytes().compare(Lower(b.text()).bytes());
  }
  return Wrong(KindName(a.kind()), " and ", KindName(b.kind()), " have no order");
}

absl::StatusOr<Value> Apply(Operator op, const Value& left, const Value& right, Budget& budget) {
  if (op == Operator::kEqual || op == Operator::kNotEqual) {
    const auto equal = Equal(left, right, budget);
    if (!equal.ok()) return equal.status();
    return Value::Bool(*equal == (op == Operator::kEqual));
  }
  const bool membership = op == Operator::kIn || op == Operator::kNotIn;
  if (membership && right.undefined()) return Value::Bool(op == Operator::kNotIn);
  if (left.undefined() || right.undefined() || left.none() || right.none()) {
    return NotFor(op, left, right);
  }
  if (membership) {
    const auto contains = Contains(right, left, budget);
    if (!contains.ok()) return contains.status();
    return Value::Bool(*contains == (op == Operator::kIn));
  }
  if (op == Operator::kConcatenate) return Concatenate(left, right, budget);
  if (op >= Operator::kLess && op <= Operator::kGreaterEqual) {
    const auto order = Compare(left, right, true, budget);
    if (!order.ok()) return order.status();
    return Value::Bool(Ordered(op, *order));
  }
  if (IsNumeric(left) && IsNumeric(right)) return Calculate(op, left, right);
  if (op == Operator::kAdd && left.is(Kind::kList) && right.is(Kind::kList)) {
    if (absl::Status s = budget.Work(left.size() + right.size()); !s.ok()) return s;
    std::vector<Value> items = left.list();
    items.insert(items.end(), right.list().begin(), right.list().end());
    return budget.OfList(std::move(items));
  }
  const bool strings = left.is(Kind::kString) && (right.is(Kind::kString) || IsNumeric(right));
  if (op == Operator::kAdd && (strings || (IsNumeric(left) && right.is(Kind::kString)))) {
    return Concatenate(left, right, budget);
  }
  if (op == Operator::kMultiply && left.is(Kind::kString) && right.is(Kind::kInt)) {
    return Repeat(left.text(), right.integer(), budget);
  }
  return NotFor(op, left, right);
}

absl::StatusOr<Value> Negated(const Value& value) {
  if (!IsNumeric(value)) return Wrong(KindName(value.kind()), " has no sign");
  return Calculate(Operator::kSubtract, Value::Int(0), value);
}

absl::StatusOr<Value> Index(const Value& object, const Value& index, Budget& budget) {
  if (index.is(Kind::kString)) {
    if (absl::Status s = budget.Work(index.size()); !s.ok()) return s;
    const std::string& name = index.text().bytes();
    if (object.is(Kind::kDict)) {
      if (const Value* found = object.dict().Find(name); found != nullptr) return *found;
    } else if (object.is(Kind::kNamespace)) {
      const Value* found = object.members().members.Find(name);
      return found == nullptr ? Value() : *found;
    }
    return FindMethod(object, name, budget);
  }
  if (!index.is(Kind::kInt) || !(object.is(Kind::kList) || object.is(Kind::kString))) {
    return Wrong(KindName(object.kind()), " has no members named by ", KindName(index.kind()));
  }
  int64_t at = index.integer();
  if (object.is(Kind::kList)) {
    if (at < 0) at += object.size();
    return at < 0 || at >= object.size() ? Value() : object.list()[static_cast<size_t>(at)];
  }
  if (absl::Status s = budget.Work(object.size()); !s.ok()) return s;
  const std::string_view bytes = object.text().bytes();
  const int64_t count = static_cast<int64_t>(CountCharacters(bytes));
  if (at < 0) at += count;
  if (at < 0 || at >= count) return Value();
  const size_t begin = Forward(bytes, 0, at);
  return budget.String(object.text().Slice(begin, Forward(bytes, begin, 1)));
}

absl::StatusOr<Value> Slice(const Value& object, const Value& start, const Value& stop,
                            const Value& step, Budget& budget) {
  if (!object.is(Kind::kList) && !object.is(Kind::kString)) {
    return Wrong(KindName(object.kind()), " can't be sliced");
  }
  for (const Value* bound : {&start, &stop, &step}) {
    if (bound->undefined() || bound->none() || bound->is(Kind::kInt)) continue;
    return Wrong("a slice is bounded by ", KindName(bound->kind()));
  }
  if (absl::Status s = budget.Work(object.size()); !s.ok()) return s;
  const int64_t stride = step.is(Kind::kInt) ? step.integer() : 1;
  if (stride == 0) return Wrong("the step of a slice is 0");
  const bool list = object.is(Kind::kList);
  const int64_t size =
      list ? object.size() : static_cast<int64_t>(CountCharacters(object.text().bytes()));
  // The lowest and highest position of a bound.
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  const auto place = [&](const Value& bound, int64_t otherwise) {
    if (!bound.is(Kind::kInt)) return otherwise;
    const int64_t at = bound.integer() < 0 ? bound.integer() + size : bound.integer();
    return at < low ? low : at > high ? high : at;
  };
  const Places places{place(start, stride > 0 ? low : high), place(stop, stride > 0 ? high : low),
                      stride};
  if (!list) return budget.String(SliceText(object.text(), places));
  std::vector<Value> items;
  for (int64_t at = places.first; places.Has(at);) {
    items.push_back(object.list()[static_cast<size_t>(at)]);
    if (places.LastAt(at)) break;
    at += stride;
  }
  return budget.OfList(std::move(items));
}

absl::StatusOr<Value> Sorted(const std::vector<Value>& items,
                             const std::function<absl::StatusOr<Value>(const Value&)>& key,
                             bool case_sensitive, bool reverse, Budget& budget) {
  const int64_t bytes = static_cast<int64_t>(items.size() * sizeof(Keyed));
  if (absl::Status s = budget.Allocate(2 * bytes); !s.ok()) return s;  // sorting takes a copy
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) {
    auto k = key(item);
    if (!k.ok()) return k;
    if (absl::Status s = budget.Work(k->size()); !s.ok()) return s;
    if (!case_sensitive && k->is(Value::Kind::kString)) k = budget.String(Lower(k->text()));
    if (!k.ok()) return k;
    keyed.push_back({*std::move(k), &item});
  }
  if (keyed.size() > 1) {
    if (absl::Status s = CheckKeys(keyed, budget); !s.ok()) return s;
  }
  absl::Status exhausted;
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    if (!exhausted.ok()) return false;
    const auto order =
        reverse ? Compare(b.key, a.key, true, budget) : Compare(a.key, b.key, true, budget);
    if (!order.ok()) exhausted = order.status();
    return order.ok() && *order < 0;
  });
  if (!exhausted.ok()) return exhausted;
  std::vector<Value> sorted;
  for (const Keyed& one : keyed) sorted.push_back(*one.item);
  return budget.OfList(std::move(sorted));
}

}  // namespace trine::jinja
