#include "runtime/template/sort.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "runtime/template/characters.h"
#include "runtime/template/operators.h"

namespace trine::jinja {
namespace {

struct Keyed {
  Value key;
  const Value* item;
};

// An order is only asked of what has one, so it can't fail half way: numbers among themselves, or
// strings among themselves.
absl::Status CheckKeys(const std::vector<Keyed>& keyed, Budget& budget) {
  for (const Keyed& one : keyed) {
    const auto order = Compare(keyed.front().key, one.key, true, budget);
    if (!order.ok()) return order.status();
  }
  return absl::OkStatus();
}

}  // namespace

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
