// Writes completion scripts for shells. Each script has all commands and options in it, so pressing
// Tab does not run trine.
#pragma once

#include <string>

#include "tools/cli/manual/option_tree.h"

namespace trine {

std::string BashCompletion(const CommandInfo& root);
std::string ZshCompletion(const CommandInfo& root);
std::string FishCompletion(const CommandInfo& root);

}  // namespace trine
