// Reads the commands and their options from the parser, so that manual and completions always agree
// with --help.
#pragma once

#include "absl/strings/string_view.h"
#include "tools/cli/manual/option_tree.h"
#include "tools/cli/options/command_line.h"

namespace CLI {
class App;
}  // namespace CLI

namespace trine {

// Returns everything that --help shows about `root` and all commands below it.
CommandInfo DescribeCommands(Command root);

// A name for values of options that are paths, such as GGUF. It tells people and shells which files
// to choose, in --help, manual and completions.
struct PathValue {
  const char* name;
  const char* suffix;  // the suffix of the files' names; "": any
  bool folder;         // the path is a folder
};

// Returns the path value called `name`; nullptr if values of that name are not paths.
const PathValue* FindPathValue(absl::string_view name);

// Names the values of well-known options (--model, --plugin, --output, ...) in `app` and all
// commands below it, unless the command has named them.
void NameValues(CLI::App* app);

}  // namespace trine
