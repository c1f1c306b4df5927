// The commands of `trine`. Each function adds a command to the parser. The program then runs the
// command that the user gave and returns its exit code: 0 for success, 1 for a failure or the
// answer no, 2 for wrong arguments.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tools/cli/options/command_line.h"

namespace trine {

using Run = std::function<int()>;

// Adds a command, which `act` runs with its arguments. Returns the arguments, too, so that the
// caller can add options that set them. If they have EngineArguments, the command also answers
// --list-devices.
template <class Arguments, class Act>
std::pair<Command, std::shared_ptr<Arguments>> NewCommand(Command app, Run* run, Act act,
                                                          const std::string& name,
                                                          const std::string& description) {
  auto a = std::make_shared<Arguments>();
  Command command = app.AddCommand(name, description);
  command.OnParsed([=] {
    *run = [=] {
      if constexpr (requires { a->engine.list_devices; }) {
        if (a->engine.list_devices) return PrintDevices(a->engine);
      }
      return act(*a);
    };
  });
  return {command, a};
}

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
