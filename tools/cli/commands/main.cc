// The trine command.
#include "tools/cli/commands/run_commands.h"

namespace {

// In the order of --help.
constexpr trine::AddCommand kCommands[] = {
    trine::AddGenerateCommand,  trine::AddChatCommand,       trine::AddEmbedCommand,
    trine::AddHeadCommand,      trine::AddPerplexityCommand, trine::AddBenchCommand,
    trine::AddReplayCommand,    trine::AddServeCommand,      trine::AddPlanCommand,
    trine::AddCalibrateCommand, trine::AddTokenizeCommand,   trine::AddShowCommand,
    trine::AddMakeModelCommand, trine::AddQuantizeCommand,   trine::AddDetectCommand,
    trine::AddPluginCommand,    trine::AddManCommand,        trine::AddCompletionCommand,
};

}  // namespace

int main(int argc, char** argv) { return trine::RunCommands(argc, argv, kCommands); }
