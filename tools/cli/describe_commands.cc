#include "tools/cli/describe_commands.h"

#include <algorithm>
#include <set>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/cli/arguments.h"
#include "tools/cli/value_names.h"

namespace trine {
namespace {

// The parser tells a value's type and what its checks expect in one text:
// "TEXT:{on,off}", "INT:INT in [0 - 1024]", "TEXT:DIR".
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
  // An empty list is how the parser writes the default of an option that may be repeated.
  if (option.get_default_str() != "[]") info->default_value = option.get_default_str();
}

std::vector<std::string> Names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // a set of pointers has another order each time
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
  info.group = option.get_group();
  if (option.get_items_expected_max() > 0) DescribeValue(option, &info);
  info.required = option.get_required();
  info.repeated = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  info.needs = Names(option.get_needs());
  info.excludes = Names(option.get_excludes());
  return info;
}

void AddOptions(const CLI::App& app, CommandInfo* info) {
  const bool is_group = app.get_name().empty();  // of options, which has a --help of its own
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || (is_group && option == app.get_help_ptr())) continue;
    auto& options = option->nonpositional() ? info->options : info->arguments;
    options.push_back(DescribeOption(*option));
    if (is_group) options.back().group = app.get_group();
  }
}

CommandInfo Describe(const CLI::App& app, std::vector<std::string> path) {
  CommandInfo info;
  path.push_back(app.get_name());
  info.path = std::move(path);
  info.description = app.get_description();
  AddOptions(app, &info);
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->get_name().empty()) {
      AddOptions(*below, &info);
    } else if (!below->get_group().empty()) {
      info.commands.push_back(Describe(*below, info.path));
    }
  }
  return info;
}

}  // namespace

CommandInfo DescribeCommands(const CLI::App& app) { return Describe(app, {}); }

}  // namespace trine
