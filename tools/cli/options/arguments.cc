#include "tools/cli/options/arguments.h"

#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/cli/options/values.h"

namespace trine {
namespace {

struct LongForm {
  const char* typed;
  const char* long_form;
};

constexpr LongForm kLongForms[] = {
    {"-ub", "--ubatch-size"},  {"-ctk", "--cache-type-k"},   {"-ctv", "--cache-type-v"},
    {"-ts", "--tensor-split"}, {"-ngl", "--gpu-layers"},     {"-dev", "--device"},
    {"-np", "--parallel"},     {"-sys", "--system-prompt"},  {"-fa", "--flash-attn"},
    {"-sm", "--split-mode"},   {"-ot", "--override-tensor"}, {"-jf", "--json-schema-file"},
    {"-pg", "--pg"},           {"-ncmoe", "--n-cpu-moe"},    {"-cmoe", "--cpu-moe"},
};

std::string WriteOut(const std::string& argument) {
  for (const LongForm& form : kLongForms) {
    const std::string typed = form.typed;
    if (argument == typed) return form.long_form;
    if (argument.rfind(typed + "=", 0) == 0) return form.long_form + argument.substr(typed.size());
  }
  return argument;
}

// The parser takes this for the option without a value, so an empty variable would go unnoticed.
constexpr char kNoFolder[] = "--pack-cache=";

// Matches -xyz, with or without =value.
bool HasSeveralLetters(const std::string& argument) {
  if (argument.size() < 3 || argument[0] != '-') return false;
  return absl::ascii_isalpha(argument[1]) && absl::ascii_isalpha(argument[2]);
}

// Returns "-n (--n-predict)": the short form that people type, then the long one.
std::string TypedName(const CLI::Option& option) {
  const std::string name = option.get_name();
  std::vector<std::string> typed = TypedForms(name);
  if (!option.get_snames().empty()) typed = {absl::StrCat("-", option.get_snames()[0])};
  return typed.empty() || typed[0] == name ? name : absl::StrCat(typed[0], " (", name, ")");
}

// Returns the first option that was given more values than it takes; null if there is none.
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

// Returns the names of the command that the user gave, such as "plugin check"; "": none.
std::string GivenCommand(const CLI::App& app) {
  std::vector<std::string> names;
  for (std::vector<CLI::App*> below = app.get_subcommands(); !below.empty();
       below = below.front()->get_subcommands()) {
    names.push_back(below.front()->get_name());
  }
  return absl::StrJoin(names, " ");
}

// Describes the first argument that the parser does not know. `text`: the parser's own message.
std::string DescribeExtra(const CLI::App& app, const std::string& text) {
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (unknown.empty() || unknown.front().empty()) return text;
  const std::string &word = unknown.front(), command = GivenCommand(app);
  if (word[0] == '-' && word.size() > 1) {
    const std::string option = word.substr(0, word.find('='));
    return command.empty() ? absl::StrCat("there is no option ", option)
                           : absl::StrCat(command, " has no option ", option);
  }
  return command.empty() ? absl::StrCat("there is no command '", word, "'")
                         : absl::StrCat(command, " has no use for '", word, "'");
}

std::string DescribeMissing(const CLI::App& app, const std::string& text) {
  if (text.rfind("A subcommand", 0) == 0) {
    const CLI::App* given = &app;
    while (!given->get_subcommands().empty()) given = given->get_subcommands().front();
    std::vector<std::string> names;
    for (const CLI::App* one : given->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(one->get_name());
    }
    return absl::StrCat(GivenCommand(app),
                        " needs one of its commands: ", absl::StrJoin(names, ", "));
  }
  const size_t end = text.find(" is required");
  return end == text.npos ? text : absl::StrCat(GivenCommand(app), " needs ", text.substr(0, end));
}

// Describes a wrong value of a flag. Values of other options are checked before the parser converts
// them.
std::string DescribeFlag(const std::string& text) {
  constexpr std::string_view kBegin = "Could not convert: ", kMiddle = " = ";
  const size_t middle = text.find(kMiddle);
  if (text.rfind(kBegin, 0) != 0 || middle == text.npos) return text;
  return absl::StrCat(text.substr(kBegin.size(), middle - kBegin.size()), ": ",
                      WrongFlag(text.substr(middle + kMiddle.size())));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WriteOutArguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool verbatim = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    verbatim = verbatim || argument == "--";
    if (!verbatim && argument == kNoFolder) {
      return absl::InvalidArgumentError("--pack-cache: the name of the folder is empty");
    }
    arguments.push_back(verbatim ? argument : WriteOut(argument));
    if (!verbatim && HasSeveralLetters(arguments.back())) {
      return absl::InvalidArgumentError(absl::StrCat("unknown option ", argument));
    }
  }
  return arguments;
}

std::vector<std::string> TypedForms(const std::string& long_form) {
  std::vector<std::string> typed;
  for (const LongForm& form : kLongForms) {
    if (long_form == form.long_form) typed.push_back(form.typed);
  }
  return typed;
}

std::string DescribeParseError(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return DescribeExtra(app, text);
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const std::vector<std::string> names = absl::StrSplit(text, " excludes ");
    if (names.size() == 2) return absl::StrCat(names[0], " does not go with ", names[1]);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    const std::vector<std::string> names = absl::StrSplit(text, " requires ");
    if (names.size() == 2) return absl::StrCat(names[0], " needs ", names[1], " beside it");
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return DescribeMissing(app, text);
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return DescribeFlag(text);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return text;
  const CLI::Option* repeated = Repeated(app);
  if (repeated == nullptr) {
    const size_t missing = text.find(": 1 required ");
    return missing == std::string::npos ? text
                                        : absl::StrCat(text.substr(0, missing), " needs a value");
  }
  const size_t count = repeated->count();
  return absl::StrCat(TypedName(*repeated), " is given ",
                      count == 2 ? "twice" : absl::StrCat(count, " times"), ": it takes one value");
}

}  // namespace trine
