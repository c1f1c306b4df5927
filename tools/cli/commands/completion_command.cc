// trine completion: prints a script that teaches a shell the commands and options.
#include <cstdio>
#include <string>

#include "tools/cli/commands/commands.h"
#include "tools/cli/manual/completion.h"
#include "tools/cli/options/describe_commands.h"

namespace trine {
namespace {

int Completion(const CommandInfo& root, const std::string& shell) {
  const std::string script = shell == "bash"  ? BashCompletion(root)
                             : shell == "zsh" ? ZshCompletion(root)
                                              : FishCompletion(root);
  std::fputs(script.c_str(), stdout);
  return 0;
}

}  // namespace

void AddCompletionCommand(Command app, Run* run) {
  const auto act = [app](const std::string& a) { return Completion(DescribeCommands(app), a); };
  auto [command, shell] = NewCommand<std::string>(
      app, run, act, "completion",
      "Print a script that completes trine's command line in a shell: source <(trine completion "
      "bash)");
  command.AddOption("SHELL", *shell, "The shell").Required().OneOf({"bash", "zsh", "fish"});
}

}  // namespace trine
