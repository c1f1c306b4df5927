// The commands of `trine`, in the order of --help.
#pragma once

#include "tools/cli/commands/run_commands.h"

namespace trine {

inline constexpr AddCommand kAllCommands[] = {
    AddGenerateCommand,   AddChatCommand,       AddEmbedCommand,    AddHeadCommand,
    AddPerplexityCommand, AddBenchCommand,      AddReplayCommand,   AddServeCommand,
    AddPlanCommand,       AddCalibrateCommand,  AddTokenizeCommand, AddShowCommand,
    AddMakeModelCommand,  AddQuantizeCommand,   AddDetectCommand,   AddPluginCommand,
    AddManCommand,        AddCompletionCommand,
};

}  // namespace trine
