// Grammars as people write them: GBNF (docs/constrained-output.md has the syntax).
#ifndef TRINE_RUNTIME_CONSTRAINT_GBNF_PARSER_H_
#define TRINE_RUNTIME_CONSTRAINT_GBNF_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

// INVALID_ARGUMENT with line:column for what can't be read: syntax, a rule that isn't defined, no
// rule called root.
absl::StatusOr<Grammar> ParseGbnf(std::string_view text);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_GBNF_PARSER_H_
