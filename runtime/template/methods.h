// What can be called on strings and dicts: text.strip(), message.get("name").
#ifndef TRINE_RUNTIME_TEMPLATE_METHODS_H_
#define TRINE_RUNTIME_TEMPLATE_METHODS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/template/budget.h"
#include "runtime/template/value.h"

namespace trine::jinja {

// The method bound to its object; undefined when there is none of that name.
absl::StatusOr<Value> FindMethod(const Value& object, std::string_view name, Budget& budget);

// Shared with the filters of these names.
absl::StatusOr<Value> Replace(const Text& text, const Arguments& arguments, Budget& budget);
absl::StatusOr<Value> Items(const Dict& dict, Budget& budget);
absl::StatusOr<Value> Keys(const Dict& dict, Budget& budget);
absl::StatusOr<Value> SortedItems(const Dict& dict, const Arguments& arguments, Budget& budget);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_METHODS_H_
