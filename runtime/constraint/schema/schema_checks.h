// Answers questions about schemas: whether a value satisfies a schema, which strings do, and
// whether any value can satisfy two schemas. All functions return INVALID_ARGUMENT for a schema or
// a pattern that is not supported, or that takes too much work.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/char_dfa.h"
#include "runtime/constraint/schema/schema_facts.h"

namespace trine::constraint {

// Returns the strings that satisfy all patterns and length limits of `facts`.
absl::StatusOr<CharDfa> StringsOf(const Facts& facts);
// Returns the texts that contain a match of `pattern`. Errors name `pointer` and `keyword`, where
// the schema has the pattern.
absl::StatusOr<CharDfa> PatternDfa(const std::string& pattern, const std::string& pointer,
                                   const std::string& keyword);

// Returns whether a value satisfies an alternative. REQUIRES: the value is a part of the reader's
// document, which remembers values by their addresses.
absl::StatusOr<bool> Satisfies(SchemaReader* reader, const Facts& facts, const Json& value);

// Returns true only if it is certain that no value satisfies both alternatives. `depth`: how deep
// both are nested in those to be compared, 0 for these themselves; properties are compared down to
// a limit.
absl::StatusOr<bool> AreDisjoint(SchemaReader* reader, const Facts& a, const Facts& b, int depth);

}  // namespace trine::constraint
