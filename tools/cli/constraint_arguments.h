// Constrained output on the command line.
#ifndef TRINE_TOOLS_CLI_CONSTRAINT_ARGUMENTS_H_
#define TRINE_TOOLS_CLI_CONSTRAINT_ARGUMENTS_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "runtime/constraint/constraint.h"
#include "runtime/engine.h"

namespace trine {

// At most one of them is given.
struct ConstraintArguments {
  std::string grammar;
  std::string grammar_file;
  std::string json_schema;
  std::string json_schema_file;
};

void AddConstraintOptions(CLI::App* command, ConstraintArguments* arguments);

bool IsConstrained(const ConstraintArguments& arguments);

// nullptr where none is asked for.
absl::StatusOr<std::shared_ptr<const Constraint>> MakeConstraint(
    const ConstraintArguments& arguments, const Engine& engine);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_CONSTRAINT_ARGUMENTS_H_
