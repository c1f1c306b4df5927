// The commands and their options as plain data, for the manual pages and the completion scripts.
#pragma once

#include <string>
#include <vector>

namespace trine {

enum class ValueKind {
  kNone,    // a flag
  kText,    // a value that can't be completed
  kFile,    // a file, or a folder on the way to one
  kFolder,  // a folder
  kChoice,  // one of `choices`
};

// An option, or an argument by position.
struct OptionInfo {
  std::vector<std::string> names;  // "-m", "--model"; the one name "FILE" of an argument
  // Short forms like "-ub", of several letters after one dash. The parser itself does not know
  // them.
  std::vector<std::string> typed_forms;
  std::string description;

  ValueKind value = ValueKind::kNone;
  std::string value_name;  // "GGUF"
  std::string suffix;      // kFile: the suffix of the files' names; "": any
  std::vector<std::string> choices;
  std::string range;  // "0 to 1024"; "": none
  std::string default_value;

  bool required = false;
  bool repeated = false;
  std::vector<std::string> needs;  // names of other options, sorted
  std::vector<std::string> excludes;
};

// A command with its options and its subcommands.
struct CommandInfo {
  std::vector<std::string> path;  // {"trine", "plugin", "check"}
  std::string description;
  std::vector<OptionInfo> options;
  std::vector<OptionInfo> arguments;  // without a dash, in order
  std::vector<CommandInfo> commands;
};

// Returns `root` and all commands below it, each before its own commands.
std::vector<const CommandInfo*> AllCommands(const CommandInfo& root);

// Returns the command that is named by words like {"plugin", "check"}; nullptr if there is none.
const CommandInfo* FindCommand(const CommandInfo& root, const std::vector<std::string>& words);

// Returns a description's first sentence or clause, without its full stop.
std::string Summary(const std::string& description);

}  // namespace trine
