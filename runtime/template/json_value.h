// JSON as values.
#ifndef TRINE_RUNTIME_TEMPLATE_JSON_VALUE_H_
#define TRINE_RUNTIME_TEMPLATE_JSON_VALUE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/template/value.h"

namespace trine::jinja {

// Strings and keys are marked as coming from outside. INVALID_ARGUMENT names `what` and the place
// of what is no JSON; RESOURCE_EXHAUSTED for lists nested too deep.
absl::StatusOr<Value> ParseJson(std::string_view json, std::string_view what);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_JSON_VALUE_H_
