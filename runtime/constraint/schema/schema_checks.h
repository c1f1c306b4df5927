// Answers questions about schemas without generating text: whether a value satisfies a schema, and
// whether any value can satisfy two schemas.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/char_dfa.h"
#include "runtime/constraint/schema/schema_facts.h"

namespace trine::constraint {

// Returns the strings that satisfy all patterns and length limits of `facts`.
absl::StatusOr<CharDfa> StringsOf(const Facts& facts);
// Returns the texts that contain a match of `pattern`. Errors name `pointer` and `keyword`.
absl::StatusOr<CharDfa> PatternDfa(const std::string& pattern, const std::string& pointer,
                                   const std::string& keyword);

absl::StatusOr<bool> Satisfies(SchemaReader* reader, const Facts& facts, const Json& value);

// Returns true only if it is certain that no value satisfies both.
absl::StatusOr<bool> AreDisjoint(SchemaReader* reader, const Facts& a, const Facts& b, int depth);

}  // namespace trine::constraint
