#include "tools/cli/manual/completion.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"

namespace trine {
namespace {

// The fixed part of the script. It finds the line's command, and the words that may be at the
// cursor.
constexpr char kBashFunctions[] = R"bash(
# Offers what fits a value: "words:A B", "files:SUFFIX", "folders:" or "text:".
_trine_offer() {
  case $1 in
    words:*) mapfile -t COMPREPLY < <(compgen -W "${1#words:}" -- "$current") ;;
    folders:*)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      ;;
    files:*)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(
        { compgen -d -- "$current"; compgen -f -X "!*${1#files:}" -- "$current"; } | sort -u)
      ;;
  esac
}

_trine() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
  local command=trine commands options argument value i
  COMPREPLY=()
  # In --option=value the shell takes "=" for a word of its own.
  if [[ $current == = ]]; then
    current=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  _trine_describe "$command"
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ " $commands " == *" ${COMP_WORDS[i]} "* ]] || break
    command+=" ${COMP_WORDS[i]}"
    _trine_describe "$command"
  done
  if _trine_value "$command" "$option"; then
    _trine_offer "$value"
  elif [[ $current == -* ]]; then
    _trine_offer "words:$options"
  elif [[ -n $commands ]]; then
    _trine_offer "words:$commands"
  else
    _trine_offer "$argument"
  fi
}

complete -F _trine trine
)bash";

// Quotes for bash and zsh.
std::string Quote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string BashValue(const OptionInfo& option) {
  switch (option.value) {
    case ValueKind::kChoice:
      return absl::StrCat("words:", absl::StrJoin(option.choices, " "));
    case ValueKind::kFile:
      return absl::StrCat("files:", option.suffix);
    case ValueKind::kFolder:
      return "folders:";
    case ValueKind::kNone:
    case ValueKind::kText:
      break;
  }
  return "text:";
}

std::vector<std::string> AllNames(const OptionInfo& option) {
  std::vector<std::string> names = option.names;
  names.insert(names.end(), option.typed_forms.begin(), option.typed_forms.end());
  return names;
}

// Writes the function that sets what may follow a command: commands, options, the argument.
std::string DescribeFunction(const std::vector<const CommandInfo*>& all) {
  std::string text = "_trine_describe() {\n  commands= options= argument=\n  case $1 in\n";
  for (const CommandInfo* command : all) {
    std::vector<std::string> commands, options;
    for (const CommandInfo& below : command->commands) commands.push_back(below.path.back());
    for (const OptionInfo& option : command->options) {
      for (const std::string& name : AllNames(option)) options.push_back(name);
    }
    const std::string argument =
        command->arguments.empty() ? "" : BashValue(command->arguments.front());
    absl::StrAppend(&text, "    ", Quote(absl::StrJoin(command->path, " ")), ")\n");
    absl::StrAppend(&text, "      commands=", Quote(absl::StrJoin(commands, " ")), "\n");
    absl::StrAppend(&text, "      options=", Quote(absl::StrJoin(options, " ")), "\n");
    absl::StrAppend(&text, "      argument=", Quote(argument), "\n      ;;\n");
  }
  return text + "  esac\n}\n";
}

// Writes the function that sets the kind of an option's value; it fails for an option without one.
std::string ValueFunction(const std::vector<const CommandInfo*>& all) {
  std::string text = "_trine_value() {\n  case \"$1 $2\" in\n";
  for (const CommandInfo* command : all) {
    for (const OptionInfo& option : command->options) {
      if (option.value == ValueKind::kNone) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : AllNames(option)) {
        patterns.push_back(Quote(absl::StrCat(absl::StrJoin(command->path, " "), " ", name)));
      }
      absl::StrAppend(&text, "    ", absl::StrJoin(patterns, " | "),
                      ") value=", Quote(BashValue(option)), " ;;\n");
    }
  }
  return text + "    *) return 1 ;;\n  esac\n}\n";
}

constexpr char kFishFunctions[] =
    R"fish(# fish completion for trine, written by `trine completion fish`.

# The words before the cursor are trine and exactly these.
function __trine_is
    set -l words (commandline -opc)
    set -e words[1]
    test "$words" = "$argv"
end

# The words before the cursor are trine and these, and perhaps more.
function __trine_in
    set -l words (commandline -opc)
    set -e words[1]
    set -l n (count $argv)
    test "$words[1..$n]" = "$argv"
end

complete -c trine -f
)fish";

std::string QuoteFish(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// Returns the condition under which a command's completions apply. A command with subcommands has
// them only before a subcommand.
std::string Condition(const CommandInfo& command) {
  const absl::Span<const std::string> words = absl::MakeConstSpan(command.path).subspan(1);
  return QuoteFish(absl::StrCat(command.commands.empty() ? "__trine_in" : "__trine_is",
                                words.empty() ? "" : " ", absl::StrJoin(words, " ")));
}

std::string FishNames(const OptionInfo& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = absl::StartsWith(name, "--");
    absl::StrAppend(&text, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
  }
  for (const std::string& form : option.typed_forms) {
    absl::StrAppend(&text, " -o ", form.substr(1));
  }
  return text;
}

std::string FishValue(const OptionInfo& option) {
  switch (option.value) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kText:
      return " -x";
    case ValueKind::kChoice:
      return absl::StrCat(" -x -a ", QuoteFish(absl::StrJoin(option.choices, " ")));
    case ValueKind::kFile:
      if (option.suffix.empty()) return " -r -F";
      return absl::StrCat(" -x -k -a ",
                          QuoteFish(absl::StrCat("(__fish_complete_suffix ", option.suffix, ")")));
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
  }
  return "";
}

// Escapes the characters with a meaning in a specification of _arguments or _describe.
std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string FunctionName(const CommandInfo& command) {
  return absl::StrCat("_", absl::StrJoin(command.path, "_"));
}

// Returns ":message:action".
std::string ZshValue(const OptionInfo& option) {
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

// Returns a specification for each name of an option. When a name has been given, the option's
// other names are not offered any more, nor the name itself unless the option may be repeated.
std::vector<std::string> OptionSpecs(const OptionInfo& option) {
  const std::vector<std::string> names = AllNames(option);
  const std::string once =
      option.repeated ? "*" : absl::StrCat("(", absl::StrJoin(names, " "), ")");
  std::vector<std::string> specs;
  for (const std::string& name : names) {
    // "=": --name=value and --name value; "+": -nvalue and -n value.
    const char* form = option.value == ValueKind::kNone ? ""
                       : absl::StartsWith(name, "--")   ? "="
                       : name.size() == 2               ? "+"
                                                        : "";
    specs.push_back(Quote(
        absl::StrCat(once, name, form, "[", Escape(option.description), "]", ZshValue(option))));
  }
  return specs;
}

std::string Arguments(const CommandInfo& command) {
  std::vector<std::string> specs;
  for (const OptionInfo& option : command.options) {
    for (std::string& spec : OptionSpecs(option)) specs.push_back(std::move(spec));
  }
  for (const OptionInfo& argument : command.arguments) {
    specs.push_back(Quote(absl::StrCat(argument.repeated ? "*" : "", ZshValue(argument))));
  }
  if (!command.commands.empty()) {
    specs.push_back("'1:command:->command'");
    specs.push_back("'*::argument:->argument'");
  }
  return absl::StrCat("  _arguments -C \\\n    ", absl::StrJoin(specs, " \\\n    "), "\n");
}

// Writes the completion of the next command, and the call of its function once it is there.
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

std::string BashCompletion(const CommandInfo& root) {
  const std::vector<const CommandInfo*> all = AllCommands(root);
  return absl::StrCat("# bash completion for trine, written by `trine completion bash`.\n\n",
                      DescribeFunction(all), "\n", ValueFunction(all), kBashFunctions);
}

std::string FishCompletion(const CommandInfo& root) {
  std::string text = kFishFunctions;
  for (const CommandInfo* command : AllCommands(root)) {
    const std::string line = absl::StrCat("complete -c trine -n ", Condition(*command));
    absl::StrAppend(&text, "\n");
    for (const CommandInfo& below : command->commands) {
      absl::StrAppend(&text, line, " -a ", QuoteFish(below.path.back()), " -d ",
                      QuoteFish(Summary(below.description)), "\n");
    }
    for (const OptionInfo& option : command->options) {
      absl::StrAppend(&text, line, FishNames(option), FishValue(option), " -d ",
                      QuoteFish(option.description), "\n");
    }
    for (const OptionInfo& argument : command->arguments) {
      if (argument.value == ValueKind::kText) continue;
      absl::StrAppend(&text, line, FishValue(argument), " -d ", QuoteFish(argument.description),
                      "\n");
    }
  }
  return text;
}

std::string ZshCompletion(const CommandInfo& root) {
  std::string text =
      "#compdef trine\n# zsh completion for trine, written by `trine completion zsh`.\n";
  for (const CommandInfo* command : AllCommands(root)) {
    absl::StrAppend(&text, "\n", FunctionName(*command), "() {\n",
                    "  local curcontext=$curcontext state line\n  typeset -A opt_args\n",
                    Arguments(*command), Commands(*command), "}\n");
  }
  // If zsh finds this file in $fpath, the file is the body of the function. If it is sourced, it
  // registers the function.
  absl::StrAppend(&text,
                  "\nif [[ $funcstack[1] == _trine ]]; then\n  _trine \"$@\"\n"
                  "else\n  compdef _trine trine\nfi\n");
  return text;
}

}  // namespace trine
