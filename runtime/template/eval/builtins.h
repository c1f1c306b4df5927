// Implements everything that templates can call: methods of strings and dicts, such as text.strip()
// and message.get("name"); filters, `value | name(arguments)`; tests, `value is name(arguments)`;
// and functions. Also has helpers to read their arguments and to find them by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/value.h"

namespace trine::jinja {

// Return the argument called `name` or at `place`, or `otherwise` if it was not given or is none.
// Fail with INVALID_ARGUMENT if the argument is of another kind.
absl::StatusOr<bool> BoolArgument(const Arguments& arguments, size_t place, std::string_view name,
                                  bool otherwise);
absl::StatusOr<int64_t> IntArgument(const Arguments& arguments, size_t place, std::string_view name,
                                    int64_t otherwise);
// Returns the text of such an argument, or null if it was not given or is none.
absl::StatusOr<const Text*> TextArgument(const Arguments& arguments, size_t place,
                                         std::string_view name);
// Returns the text of such an argument. Fails with INVALID_ARGUMENT if it was not given.
absl::StatusOr<const Text*> NeededText(const Arguments& arguments, size_t place,
                                       std::string_view name);

// A filter or a method.
using Operation = absl::StatusOr<Value> (*)(const Value& operand, const Arguments& arguments,
                                            Budget& budget);
// An entry of a table of operations.
struct NamedOperation {
  std::string_view name;
  Operation operation;
};

// Returns the operation called `name`; null if the table has none.
template <size_t kCount>
Operation FindIn(const NamedOperation (&table)[kCount], std::string_view name) {
  for (const NamedOperation& entry : table) {
    if (entry.name == name) return entry.operation;
  }
  return nullptr;
}

// Returns the method of `object` called `name`, bound to the object; undefined if there is none.
absl::StatusOr<Value> FindMethod(const Value& object, std::string_view name, Budget& budget);

// Methods of dicts, which filters use too. REQUIRES: `dict` is a dict.
absl::StatusOr<Value> Items(const Value& dict, const Arguments& arguments, Budget& budget);
absl::StatusOr<Value> Keys(const Value& dict, const Arguments& arguments, Budget& budget);
absl::StatusOr<Value> SortedItems(const Value& dict, const Arguments& arguments, Budget& budget);

// Applies a filter. filters_list.cc has the filters of lists, filters.cc the others. Fails with
// INVALID_ARGUMENT if there is no such filter, or if it does not take such a value.
absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& operand,
                                  const Arguments& arguments, Budget& budget);

// Returns the filter of lists called `name`; null if there is none.
Operation FindListFilter(std::string_view name);

// Returns a list as it is, the characters of a string, or the keys of a dict. Fails with
// INVALID_ARGUMENT for other values.
absl::StatusOr<Value> ToList(const Value& value, Budget& budget);

// Applies a test, `value is name(arguments)`. Fails with INVALID_ARGUMENT if there is no such test,
// or if it does not take such a value.
absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& operand,
                               const Arguments& arguments, Budget& budget);

// The function range(stop), range(start, stop) or range(start, stop, step) of templates.
absl::StatusOr<Value> Range(Budget& budget, const Arguments& arguments);

// The function raise_exception(message) of templates. Returns a status with exactly this message.
absl::StatusOr<Value> RaiseException(Budget& budget, const Arguments& arguments);
// Returns whether the status comes from RaiseException.
bool IsRaised(const absl::Status& status);

// Returns the members of a new namespace(...): first those of a dict or a list of pairs, if there
// is such an argument, then the named arguments.
absl::StatusOr<Dict> NamespaceMembers(const Arguments& arguments, Budget& budget);

// Formats like C's strftime in the C locale, for the letters of dates and times of day.
absl::StatusOr<std::string> FormatTime(std::string_view format, const std::tm& time,
                                       Budget& budget);

}  // namespace trine::jinja
