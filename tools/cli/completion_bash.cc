#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/cli/completion.h"

namespace trine {
namespace {

// The script's own part: finds out which command the line is at, and what may stand at the cursor.
constexpr char kFunctions[] = R"bash(
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

std::string Quote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Value(const OptionInfo& option) {
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

// Sets what may follow a command: its commands, its options, and its first argument's value.
std::string DescribeFunction(const std::vector<const CommandInfo*>& all) {
  std::string text = "_trine_describe() {\n  commands= options= argument=\n  case $1 in\n";
  for (const CommandInfo* command : all) {
    std::vector<std::string> commands, options;
    for (const CommandInfo& below : command->commands) commands.push_back(below.path.back());
    for (const OptionInfo& option : command->options) {
      for (const std::string& name : AllNames(option)) options.push_back(name);
    }
    const std::string argument =
        command->arguments.empty() ? "" : Value(command->arguments.front());
    absl::StrAppend(&text, "    ", Quote(absl::StrJoin(command->path, " ")), ")\n");
    absl::StrAppend(&text, "      commands=", Quote(absl::StrJoin(commands, " ")), "\n");
    absl::StrAppend(&text, "      options=", Quote(absl::StrJoin(options, " ")), "\n");
    absl::StrAppend(&text, "      argument=", Quote(argument), "\n      ;;\n");
  }
  return text + "  esac\n}\n";
}

// Sets what the value of a command's option is; fails for one that has none.
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
                      ") value=", Quote(Value(option)), " ;;\n");
    }
  }
  return text + "    *) return 1 ;;\n  esac\n}\n";
}

}  // namespace

std::string BashCompletion(const CommandInfo& root) {
  const std::vector<const CommandInfo*> all = AllCommands(root);
  return absl::StrCat("# bash completion for trine, written by `trine completion bash`.\n\n",
                      DescribeFunction(all), "\n", ValueFunction(all), kFunctions);
}

}  // namespace trine
