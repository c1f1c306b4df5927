// The main function of `trine`, for a given list of commands.
#pragma once

#include <span>

#include "tools/cli/commands/commands.h"

namespace trine {

using AddCommand = void (*)(Command app, Run* run);

// Parses the arguments, runs the command that the user gave and returns its exit code. Returns the
// code of a failure if standard output could not be written. Catches every exception.
int RunCommands(int argc, char** argv, std::span<const AddCommand> commands);

}  // namespace trine
