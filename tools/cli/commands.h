// The subcommands of `trine`. Each adds itself to the parser; the one given is then run and its
// exit code returned: 0 done, 1 the answer is no, 2 wrong arguments.
#ifndef TRINE_TOOLS_CLI_COMMANDS_H_
#define TRINE_TOOLS_CLI_COMMANDS_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace trine {

using Run = std::function<int()>;

// `run` is set when the subcommand is the one the user gave.
void AddChatCommand(CLI::App* app, Run* run);
void AddGenerateCommand(CLI::App* app, Run* run);
void AddEmbedCommand(CLI::App* app, Run* run);
void AddHeadCommand(CLI::App* app, Run* run);
void AddPerplexityCommand(CLI::App* app, Run* run);
void AddBenchCommand(CLI::App* app, Run* run);
void AddReplayCommand(CLI::App* app, Run* run);
void AddServeCommand(CLI::App* app, Run* run);
void AddPlanCommand(CLI::App* app, Run* run);
void AddCalibrateCommand(CLI::App* app, Run* run);
void AddShowCommand(CLI::App* app, Run* run);
void AddTokenizeCommand(CLI::App* app, Run* run);
void AddMakeModelCommand(CLI::App* app, Run* run);
void AddQuantizeCommand(CLI::App* app, Run* run);
void AddDetectCommand(CLI::App* app, Run* run);
void AddPluginCommand(CLI::App* app, Run* run);

// These two write about all the commands of `app`, added before or after them.
void AddManCommand(CLI::App* app, Run* run);
void AddCompletionCommand(CLI::App* app, Run* run);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_COMMANDS_H_
