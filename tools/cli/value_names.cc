#include "tools/cli/value_names.h"

#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"

namespace trine {
namespace {

constexpr PathValue kPathValues[] = {
    {"GGUF", ".gguf", false},
    {"PLUGIN", ".so", false},
    {"FILE", "", false},
    {"DIR", "", true},
};

struct KnownOption {
  const char* name;  // long, without its dashes; "-x": any that ends so
  const char* value_name;
};

constexpr KnownOption kKnownOptions[] = {
    {"model", "GGUF"}, {"-model", "GGUF"}, {"plugin", "PLUGIN"}, {"file", "FILE"},
    {"-file", "FILE"}, {"input", "FILE"},  {"output", "FILE"},   {"path", "FILE"},
    {"folder", "DIR"}, {"dir", "DIR"},     {"-dir", "DIR"},
};

const char* KnownValueName(absl::string_view option) {
  for (const KnownOption& known : kKnownOptions) {
    const absl::string_view name = known.name;
    if (name[0] == '-' ? absl::EndsWithIgnoreCase(option, name)
                       : absl::EqualsIgnoreCase(option, name)) {
      return known.value_name;
    }
  }
  return nullptr;
}

void NameValue(CLI::Option* option) {
  if (option->get_type_name() != "TEXT") return;
  std::vector<std::string> names = option->get_lnames();
  if (option->get_positional()) names.push_back(option->get_name(true));
  for (const std::string& name : names) {
    if (const char* value_name = KnownValueName(name); value_name != nullptr) {
      option->type_name(value_name);
      return;
    }
  }
}

}  // namespace

const PathValue* FindPathValue(absl::string_view name) {
  for (const PathValue& value : kPathValues) {
    if (name == value.name) return &value;
  }
  return nullptr;
}

void NameValues(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) NameValue(option);
  for (CLI::App* below : app->get_subcommands([](CLI::App*) { return true; })) NameValues(below);
}

}  // namespace trine
