// trine show model: what a model file holds and what running it would take.
#ifndef TRINE_TOOLS_CLI_SHOW_COMMAND_H_
#define TRINE_TOOLS_CLI_SHOW_COMMAND_H_

#include "tools/cli/commands.h"

namespace trine {

void AddShowCommand(CLI::App* app, Run* run);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_SHOW_COMMAND_H_
