// What `value is name(arguments)` asks.
#ifndef TRINE_RUNTIME_TEMPLATE_PREDICATES_H_
#define TRINE_RUNTIME_TEMPLATE_PREDICATES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/template/budget.h"
#include "runtime/template/value.h"

namespace trine::jinja {

// INVALID_ARGUMENT when there is no such test, or not for such a value.
absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& operand,
                               const Arguments& arguments, Budget& budget);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_PREDICATES_H_
