// Compiles a JSON Schema to a grammar: every text of the grammar is JSON that the schema accepts.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/grammar.h"

namespace trine::constraint {

// Compiles a schema. Returns INVALID_ARGUMENT, naming the JSON pointer and the keyword, if the
// schema contradicts itself or has a keyword that is not supported. docs/constrained-output.md
// lists the supported keywords.
absl::StatusOr<Grammar> CompileJsonSchema(std::string_view text);

}  // namespace trine::constraint
