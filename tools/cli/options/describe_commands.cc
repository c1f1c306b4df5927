#include "tools/cli/options/describe_commands.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/cli/options/arguments.h"

namespace trine {
namespace {

// A name for values of options that are paths, such as GGUF. It tells people and shells which files
// to choose, in --help, manual and completions.
struct PathValue {
  const char* name;
  const char* suffix;  // the suffix of the files' names; "": any
  bool folder;         // the path is a folder
};

constexpr PathValue kPathValues[] = {
    {"GGUF", ".gguf", false},
    {"PLUGIN", ".so", false},
    {"FILE", "", false},
    {"DIR", "", true},
};

// Returns the path value called `name`; nullptr if values of that name are not paths.
const PathValue* FindPathValue(absl::string_view name) {
  for (const PathValue& value : kPathValues) {
    if (name == value.name) return &value;
  }
  return nullptr;
}

struct KnownOption {
  const char* name;  // long, without its dashes; "-x": any that ends in -x
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

// The parser gives the type of a value and the expectations of its checks as one text, such as
// "TEXT:{on,off}", "INT:INT in [0 - 1024]" or "TEXT:DIR".
void DescribeValue(const CLI::Option& option, OptionInfo* info) {
  const std::string type = option.get_type_name();
  const std::vector<std::string> parts = absl::StrSplit(type, ':');
  info->value = ValueKind::kText;
  info->value_name = parts[0];
  for (const std::string& part : parts) {
    absl::string_view text = part;
    if (absl::ConsumePrefix(&text, "{") && absl::ConsumeSuffix(&text, "}")) {
      info->value = ValueKind::kChoice;
      info->choices = absl::StrSplit(text, ',');
    } else if (const size_t at = text.find(" in [");
               at != text.npos && absl::ConsumeSuffix(&text, "]")) {
      const std::pair<std::string, std::string> ends =
          absl::StrSplit(text.substr(at + 5), absl::MaxSplits(" - ", 1));
      info->range = absl::StrCat(ends.first, " to ", ends.second);
    } else if (const PathValue* path = FindPathValue(part); path != nullptr) {
      info->value = path->folder ? ValueKind::kFolder : ValueKind::kFile;
      info->value_name = path->name;
      info->suffix = path->suffix;
    }
  }
  // The parser writes "[]" as the default of an option that may be repeated.
  if (option.get_default_str() != "[]") info->default_value = option.get_default_str();
}

std::vector<std::string> Names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // a set of pointers has no fixed order
  return names;
}

OptionInfo DescribeOption(const CLI::Option& option) {
  OptionInfo info;
  if (option.nonpositional()) {
    for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) {
      info.names.push_back("--" + name);
      for (std::string& form : TypedForms("--" + name)) info.typed_forms.push_back(std::move(form));
    }
  } else {
    info.names.push_back(option.get_name(true));
  }
  info.description = option.get_description();
  if (option.get_items_expected_max() > 0) DescribeValue(option, &info);
  info.required = option.get_required();
  info.repeated = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  info.needs = Names(option.get_needs());
  info.excludes = Names(option.get_excludes());
  return info;
}

CommandInfo Describe(const CLI::App& app, std::vector<std::string> path) {
  CommandInfo info;
  path.push_back(app.get_name());
  info.path = std::move(path);
  info.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    auto& options = option->nonpositional() ? info.options : info.arguments;
    options.push_back(DescribeOption(*option));
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    info.commands.push_back(Describe(*below, info.path));
  }
  return info;
}

}  // namespace

void NameValues(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) NameValue(option);
  for (CLI::App* below : app->get_subcommands([](CLI::App*) { return true; })) NameValues(below);
}

CommandInfo DescribeCommands(Command root) { return Describe(root.app(), {}); }

}  // namespace trine
