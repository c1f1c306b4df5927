// Makes expressions for JSON text. Each character of a string has exactly one spelling, and ':' and
// ',' are followed by at most one space.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/char_dfa.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/schema/schema_facts.h"

namespace trine::constraint {

// Returns a string's character out of `set`, escaped if JSON requires that.
ExprPtr JsonCharacter(const CodePointSet& set);
// Returns a quoted string of min to max characters.
ExprPtr JsonString(int64_t min, int64_t max);
// Returns a quoted string that the automaton accepts.
ExprPtr JsonString(const CharDfa& dfa);
ExprPtr JsonComma();
ExprPtr JsonColon();

// Makes the grammar rules that an object refers to.
class RuleMaker {
 public:
  virtual ~RuleMaker() = default;
  virtual absl::StatusOr<ExprPtr> Value(const Schemas& schemas) = 0;
  virtual ExprPtr AddRule(const std::string& name, ExprPtr body) = 0;
};

// Returns an object with its properties in the schema's order. An optional property may be left
// out.
absl::StatusOr<ExprPtr> ObjectText(const Facts& facts, SchemaReader* reader, RuleMaker* rules);

}  // namespace trine::constraint
