// trine completion: what teaches a shell the commands and options.
#include <cstdio>
#include <memory>
#include <string>

#include "tools/cli/commands.h"
#include "tools/cli/completion.h"
#include "tools/cli/describe_commands.h"

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

void AddCompletionCommand(CLI::App* app, Run* run) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand(
      "completion",
      "Print a script that completes trine's command line in a shell: source <(trine completion "
      "bash)");
  command->add_option("SHELL", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([=] { *run = [=] { return Completion(DescribeCommands(*app), *shell); }; });
}

}  // namespace trine
