// Reads the commands and their options from the parser itself, so that what is written about them
// can't fall behind --help.
#ifndef TRINE_TOOLS_CLI_DESCRIBE_COMMANDS_H_
#define TRINE_TOOLS_CLI_DESCRIBE_COMMANDS_H_

#include "tools/cli/option_tree.h"

namespace CLI {
class App;
}  // namespace CLI

namespace trine {

// What --help would show of `app` and all below it; what it hides is left out.
CommandInfo DescribeCommands(const CLI::App& app);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_DESCRIBE_COMMANDS_H_
