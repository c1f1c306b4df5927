// Questions about schemas that are answered without writing a text: is this value one of theirs, is
// there a value of both.
#ifndef TRINE_RUNTIME_CONSTRAINT_SCHEMA_CHECKS_H_
#define TRINE_RUNTIME_CONSTRAINT_SCHEMA_CHECKS_H_

#include "absl/status/statusor.h"
#include "runtime/constraint/char_dfa.h"
#include "runtime/constraint/schema_facts.h"

namespace trine::constraint {

// The strings that patterns and lengths leave.
absl::StatusOr<CharDfa> StringsOf(const Facts& facts);
// The texts in which a pattern is found; `pointer` and `keyword` are for messages.
absl::StatusOr<CharDfa> PatternDfa(const std::string& pattern, const std::string& pointer,
                                   const std::string& keyword);

absl::StatusOr<bool> Satisfies(SchemaReader* reader, const Facts& facts, const Json& value);

// True only where it is certain that no value satisfies both.
absl::StatusOr<bool> AreDisjoint(SchemaReader* reader, const Facts& a, const Facts& b, int depth);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_SCHEMA_CHECKS_H_
