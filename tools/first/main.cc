// The program of a first build: trine with two of its commands (README.md).
#include "tools/cli/commands/run_commands.h"

namespace {

constexpr trine::AddCommand kCommands[] = {trine::AddGenerateCommand, trine::AddChatCommand};

}  // namespace

int main(int argc, char** argv) { return trine::RunCommands(argc, argv, kCommands); }
