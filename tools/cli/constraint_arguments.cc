#include "tools/cli/constraint_arguments.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/read_input.h"

namespace trine {

void AddConstraintOptions(CLI::App* command, ConstraintArguments* a) {
  CLI::Option* const options[] = {
      command->add_option("--grammar", a->grammar, "The answer is a text of this grammar (GBNF)"),
      command->add_option("--grammar-file", a->grammar_file, "The grammar from a file"),
      command->add_option("-j,--json-schema", a->json_schema,
                          "The answer is JSON that this schema accepts; {}: any JSON"),
      command->add_option("--json-schema-file", a->json_schema_file,
                          "The schema from a file; also -jf"),
  };
  for (CLI::Option* option : options) {
    option->check([](const std::string& text) { return text.empty() ? "it is empty" : ""; });
    for (CLI::Option* other : options) {
      if (option != other) option->excludes(other);
    }
  }
}

bool IsConstrained(const ConstraintArguments& a) {
  return !a.grammar.empty() || !a.grammar_file.empty() || !a.json_schema.empty() ||
         !a.json_schema_file.empty();
}

absl::StatusOr<std::shared_ptr<const Constraint>> MakeConstraint(const ConstraintArguments& a,
                                                                 const Engine& engine) {
  if (!IsConstrained(a)) return nullptr;
  const bool is_grammar = !a.grammar.empty() || !a.grammar_file.empty();
  const std::string& file = is_grammar ? a.grammar_file : a.json_schema_file;
  absl::StatusOr<std::string> text = is_grammar ? a.grammar : a.json_schema;
  if (!file.empty()) text = ReadWholeFile(file);
  if (!text.ok()) return text.status();
  auto constraint = is_grammar ? Constraint::FromGbnf(*text, engine.constraint_vocabulary())
                               : Constraint::FromJsonSchema(*text, engine.constraint_vocabulary());
  if (!constraint.ok() && !file.empty()) {
    return absl::Status(constraint.status().code(),
                        absl::StrCat(file, ": ", constraint.status().message()));
  }
  return constraint;
}

}  // namespace trine
