// JSON Schemas as grammars: every text of the grammar is JSON that the schema accepts.
#ifndef TRINE_RUNTIME_CONSTRAINT_SCHEMA_COMPILER_H_
#define TRINE_RUNTIME_CONSTRAINT_SCHEMA_COMPILER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

// INVALID_ARGUMENT, with the JSON pointer and the keyword, for a schema that can't be honoured:
// contradictory, or with a keyword that is not supported (docs/constrained-output.md lists them).
absl::StatusOr<Grammar> CompileJsonSchema(std::string_view text);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_SCHEMA_COMPILER_H_
