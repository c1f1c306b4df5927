#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "tools/cli/completion.h"

namespace trine {
namespace {

constexpr char kFunctions[] =
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

std::string Quote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// A command that has others below it knows what follows only as long as none of them does.
std::string Condition(const CommandInfo& command) {
  const absl::Span<const std::string> words = absl::MakeConstSpan(command.path).subspan(1);
  return Quote(absl::StrCat(command.commands.empty() ? "__trine_in" : "__trine_is",
                            words.empty() ? "" : " ", absl::StrJoin(words, " ")));
}

std::string Names(const OptionInfo& option) {
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

std::string Value(const OptionInfo& option) {
  switch (option.value) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kText:
      return " -x";
    case ValueKind::kChoice:
      return absl::StrCat(" -x -a ", Quote(absl::StrJoin(option.choices, " ")));
    case ValueKind::kFile:
      if (option.suffix.empty()) return " -r -F";
      return absl::StrCat(" -x -k -a ",
                          Quote(absl::StrCat("(__fish_complete_suffix ", option.suffix, ")")));
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
  }
  return "";
}

}  // namespace

std::string FishCompletion(const CommandInfo& root) {
  std::string text = kFunctions;
  for (const CommandInfo* command : AllCommands(root)) {
    const std::string line = absl::StrCat("complete -c trine -n ", Condition(*command));
    absl::StrAppend(&text, "\n");
    for (const CommandInfo& below : command->commands) {
      absl::StrAppend(&text, line, " -a ", Quote(below.path.back()), " -d ",
                      Quote(Summary(below.description)), "\n");
    }
    for (const OptionInfo& option : command->options) {
      absl::StrAppend(&text, line, Names(option), Value(option), " -d ", Quote(option.description),
                      "\n");
    }
    for (const OptionInfo& argument : command->arguments) {
      if (argument.value == ValueKind::kText) continue;
      absl::StrAppend(&text, line, Value(argument), " -d ", Quote(argument.description), "\n");
    }
  }
  return text;
}

}  // namespace trine
