// The commands and their options as plain data, for what is written about them: the manual pages
// and the shells' completions.
#ifndef TRINE_TOOLS_CLI_OPTION_TREE_H_
#define TRINE_TOOLS_CLI_OPTION_TREE_H_

#include <string>
#include <vector>

namespace trine {

enum class ValueKind {
  kNone,    // a flag
  kText,    // nothing that can be guessed
  kFile,    // a file, or a folder on the way to one
  kFolder,  // a folder
  kChoice,  // one of `choices`
};

struct OptionInfo {
  std::vector<std::string> names;  // "-m", "--model"; of an argument its one name, "FILE"
  // "-ub" and its like: letters behind one dash, which the parser itself does not know.
  std::vector<std::string> typed_forms;
  std::string description;
  std::string group;  // the heading it stands under in --help

  ValueKind value = ValueKind::kNone;
  std::string value_name;  // "GGUF"
  std::string suffix;      // kFile: what names end with; "": any
  std::vector<std::string> choices;
  std::string range;  // "0 to 1024"; "": none is stated
  std::string default_value;

  bool required = false;
  bool repeated = false;
  std::vector<std::string> needs;  // names of other options, sorted
  std::vector<std::string> excludes;
};

struct CommandInfo {
  std::vector<std::string> path;  // {"trine", "plugin", "check"}
  std::string description;
  std::vector<OptionInfo> options;
  std::vector<OptionInfo> arguments;  // without a dash, in their order
  std::vector<CommandInfo> commands;
};

// `root` and all below it, each before its own commands.
std::vector<const CommandInfo*> AllCommands(const CommandInfo& root);

// The one the words lead to from `root`, nullptr when there is none: {"plugin", "check"}.
const CommandInfo* FindCommand(const CommandInfo& root, const std::vector<std::string>& words);

// A description's first sentence or clause, without its stop.
std::string Summary(const std::string& description);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_OPTION_TREE_H_
