#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/cli/completion.h"

namespace trine {
namespace {

std::string Quote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Inside a specification of _arguments or _describe these mean something.
std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string FunctionName(const CommandInfo& command) {
  return absl::StrCat("_", absl::StrJoin(command.path, "_"));
}

// ":message:action".
std::string Value(const OptionInfo& option) {
  std::string action = " ";
  switch (option.value) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kChoice:
      action = absl::StrCat("(", absl::StrJoin(option.choices, " "), ")");
      break;
    case ValueKind::kFile:
      action =
          option.suffix.empty() ? "_files" : absl::StrCat("_files -g \"*", option.suffix, "\"");
      break;
    case ValueKind::kFolder:
      action = "_files -/";
      break;
    case ValueKind::kText:
      break;
  }
  return absl::StrCat(":", Escape(option.value_name), ":", action);
}

// One specification for each name; one that was given rules out the others, and itself unless it
// may be repeated.
std::vector<std::string> OptionSpecs(const OptionInfo& option) {
  std::vector<std::string> names = option.names;
  names.insert(names.end(), option.typed_forms.begin(), option.typed_forms.end());
  const std::string once =
      option.repeated ? "*" : absl::StrCat("(", absl::StrJoin(names, " "), ")");
  std::vector<std::string> specs;
  for (const std::string& name : names) {
    // "=": --name=value and --name value; "+": -nvalue and -n value.
    const char* form = option.value == ValueKind::kNone ? ""
                       : absl::StartsWith(name, "--")   ? "="
                       : name.size() == 2               ? "+"
                                                        : "";
    specs.push_back(
        Quote(absl::StrCat(once, name, form, "[", Escape(option.description), "]", Value(option))));
  }
  return specs;
}

std::string Arguments(const CommandInfo& command) {
  std::vector<std::string> specs;
  for (const OptionInfo& option : command.options) {
    for (std::string& spec : OptionSpecs(option)) specs.push_back(std::move(spec));
  }
  for (const OptionInfo& argument : command.arguments) {
    specs.push_back(Quote(absl::StrCat(argument.repeated ? "*" : "", Value(argument))));
  }
  if (!command.commands.empty()) {
    specs.push_back("'1:command:->command'");
    specs.push_back("'*::argument:->argument'");
  }
  return absl::StrCat("  _arguments -C \\\n    ", absl::StrJoin(specs, " \\\n    "), "\n");
}

// Which command comes next, and its own function once it is there.
std::string Commands(const CommandInfo& command) {
  if (command.commands.empty()) return "";
  std::string list, cases;
  for (const CommandInfo& below : command.commands) {
    absl::StrAppend(&list, "        ",
                    Quote(absl::StrCat(below.path.back(), ":", Escape(Summary(below.description)))),
                    "\n");
    absl::StrAppend(&cases, "        ", below.path.back(), ") ", FunctionName(below), " ;;\n");
  }
  return absl::StrCat("  case $state in\n    command)\n      local -a commands=(\n", list,
                      "      )\n      _describe -t commands command commands\n      ;;\n"
                      "    argument)\n      case $line[1] in\n",
                      cases, "      esac\n      ;;\n  esac\n");
}

}  // namespace

std::string ZshCompletion(const CommandInfo& root) {
  std::string text =
      "#compdef trine\n# zsh completion for trine, written by `trine completion zsh`.\n";
  for (const CommandInfo* command : AllCommands(root)) {
    absl::StrAppend(&text, "\n", FunctionName(*command), "() {\n",
                    "  local curcontext=$curcontext state line\n  typeset -A opt_args\n",
                    Arguments(*command), Commands(*command), "}\n");
  }
  // Found in $fpath this file is the function's body; sourced, it registers the function.
  absl::StrAppend(&text,
                  "\nif [[ $funcstack[1] == _trine ]]; then\n  _trine \"$@\"\n"
                  "else\n  compdef _trine trine\nfi\n");
  return text;
}

}  // namespace trine
