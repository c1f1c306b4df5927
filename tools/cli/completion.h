// Completion scripts for the shells people use. Each is a whole script, written from the commands'
// description: nothing of trine runs while a person presses Tab.
#ifndef TRINE_TOOLS_CLI_COMPLETION_H_
#define TRINE_TOOLS_CLI_COMPLETION_H_

#include <string>

#include "tools/cli/option_tree.h"

namespace trine {

std::string BashCompletion(const CommandInfo& root);
std::string ZshCompletion(const CommandInfo& root);
std::string FishCompletion(const CommandInfo& root);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_COMPLETION_H_
