// What `value | name(arguments)` does. filters_text.cc has those that make strings,
// filters_list.cc those of lists, filters.cc the rest.
#ifndef TRINE_RUNTIME_TEMPLATE_FILTERS_H_
#define TRINE_RUNTIME_TEMPLATE_FILTERS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/template/budget.h"
#include "runtime/template/value.h"

namespace trine::jinja {

using Filter = absl::StatusOr<Value> (*)(const Value& operand, const Arguments& arguments,
                                         Budget& budget);
struct FilterEntry {
  std::string_view name;
  Filter filter;
};

// INVALID_ARGUMENT when there is no such filter, or not for such a value.
absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& operand,
                                  const Arguments& arguments, Budget& budget);

// Null when they have none of that name.
Filter FindTextFilter(std::string_view name);
Filter FindListFilter(std::string_view name);

// A list, the characters of a string, or the keys of a dict. INVALID_ARGUMENT for anything else.
absl::StatusOr<Value> ToList(const Value& value, Budget& budget);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_FILTERS_H_
