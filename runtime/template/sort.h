// Sorting values, of which some can't be compared.
#ifndef TRINE_RUNTIME_TEMPLATE_SORT_H_
#define TRINE_RUNTIME_TEMPLATE_SORT_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/template/budget.h"
#include "runtime/template/value.h"

namespace trine::jinja {

// Stable, by what `key` gives of each item. INVALID_ARGUMENT where two keys have no order.
absl::StatusOr<Value> Sorted(const std::vector<Value>& items,
                             const std::function<absl::StatusOr<Value>(const Value&)>& key,
                             bool case_sensitive, bool reverse, Budget& budget);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_SORT_H_
