// JSON objects of a schema: properties in its order, those it need not have left out or not.
#ifndef TRINE_RUNTIME_CONSTRAINT_OBJECT_TEXT_H_
#define TRINE_RUNTIME_CONSTRAINT_OBJECT_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"
#include "runtime/constraint/schema_facts.h"

namespace trine::constraint {

// Where the rules of values and of other parts come from.
class RuleMaker {
 public:
  virtual ~RuleMaker() = default;
  virtual absl::StatusOr<ExprPtr> Value(const Schemas& schemas) = 0;
  virtual ExprPtr AddRule(const std::string& name, ExprPtr body) = 0;
};

absl::StatusOr<ExprPtr> ObjectText(const Facts& facts, SchemaReader* reader, RuleMaker* rules);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_OBJECT_TEXT_H_
