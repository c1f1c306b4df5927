// Reads the commands and their options from the parser, so that manual and completions always agree
// with --help.
#pragma once

#include "tools/cli/manual/option_tree.h"
#include "tools/cli/options/command_line.h"

namespace CLI {
class App;
}  // namespace CLI

namespace trine {

// Returns everything that --help shows about `root` and all commands below it.
CommandInfo DescribeCommands(Command root);

// Names the values of well-known options (--model, --plugin, --output, ...) in `app` and all
// commands below it, unless the command has named them.
void NameValues(CLI::App* app);

}  // namespace trine
