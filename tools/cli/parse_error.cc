#include "tools/cli/parse_error.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cli/arguments.h"

namespace trine {
namespace {

// "-n (--n-predict)": what people type first.
std::string TypedName(const CLI::Option& option) {
  const std::string name = option.get_name();
  std::vector<std::string> typed = TypedForms(name);
  if (!option.get_snames().empty()) typed = {absl::StrCat("-", option.get_snames()[0])};
  return typed.empty() || typed[0] == name ? name : absl::StrCat(typed[0], " (", name, ")");
}

// The first option with more values than it takes; null where there is none.
const CLI::Option* Repeated(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1 && option->count() > 1 &&
        option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) {
      return option;
    }
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (const CLI::Option* option = Repeated(*below); option != nullptr) return option;
  }
  return nullptr;
}

}  // namespace

std::string DescribeParseError(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return error.what();
  const CLI::Option* repeated = Repeated(app);
  if (repeated == nullptr) return error.what();
  const size_t count = repeated->count();
  return absl::StrCat(TypedName(*repeated), " is given ",
                      count == 2 ? "twice" : absl::StrCat(count, " times"), ": it takes one value");
}

}  // namespace trine
