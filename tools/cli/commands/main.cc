// The trine command.
#include "tools/cli/commands/all_commands.h"

int main(int argc, char** argv) { return trine::RunCommands(argc, argv, trine::kAllCommands); }
