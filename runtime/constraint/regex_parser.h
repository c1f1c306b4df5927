// Regular expressions of JSON Schema's `pattern`: what ECMA-262 and finite automata have in common.
#ifndef TRINE_RUNTIME_CONSTRAINT_REGEX_PARSER_H_
#define TRINE_RUNTIME_CONSTRAINT_REGEX_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

// The texts in which the pattern is found, as an expression without rules: where an alternative is
// not anchored with ^ or $, anything may stand before or behind it. INVALID_ARGUMENT for what can't
// be read or is no regular language: look-around, back references, \b, \p{...}.
absl::StatusOr<ExprPtr> ParseRegex(std::string_view pattern);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_REGEX_PARSER_H_
