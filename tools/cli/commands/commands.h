// The commands of `trine`. Each function adds a command to the parser. The program then runs the
// command that the user gave and returns its exit code: 0 for success, 1 for a failure or the
// answer no, 2 for wrong arguments.
#pragma once

#include <functional>

#include "tools/cli/options/command_line.h"

namespace trine {

using Run = std::function<int()>;

// Add a command. When the user has given that command, *run is set to the function that runs it.
void AddChatCommand(Command app, Run* run);
void AddGenerateCommand(Command app, Run* run);
void AddEmbedCommand(Command app, Run* run);
void AddHeadCommand(Command app, Run* run);
void AddPerplexityCommand(Command app, Run* run);
void AddBenchCommand(Command app, Run* run);
void AddReplayCommand(Command app, Run* run);
void AddServeCommand(Command app, Run* run);
void AddPlanCommand(Command app, Run* run);
void AddCalibrateCommand(Command app, Run* run);
void AddShowCommand(Command app, Run* run);
void AddTokenizeCommand(Command app, Run* run);
void AddMakeModelCommand(Command app, Run* run);
void AddQuantizeCommand(Command app, Run* run);
void AddDetectCommand(Command app, Run* run);
void AddPluginCommand(Command app, Run* run);

// Add the commands that describe all commands of `app`, added before or after these two.
void AddManCommand(Command app, Run* run);
void AddCompletionCommand(Command app, Run* run);

}  // namespace trine
