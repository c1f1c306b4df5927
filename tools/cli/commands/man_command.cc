// trine man: prints the manual pages, from the same tables as --help.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/version.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/manual/man_page.h"
#include "tools/cli/manual/option_tree.h"
#include "tools/cli/options/describe_commands.h"
#include "tools/cli/options/engine_arguments.h"

namespace trine {
namespace {

namespace fs = std::filesystem;

struct ManArguments {
  std::vector<std::string> command;
  std::string folder;
};

absl::Status WritePages(const CommandInfo& root, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return absl::NotFoundError(absl::StrCat(folder.string(), ": ", error.message()));
  for (const CommandInfo* command : AllCommands(root)) {
    const fs::path path = folder / absl::StrCat(ManPageName(*command), ".1");
    std::ofstream file(path);
    file << ManPage(*command, Version());
    file.close();
    if (!file) {
      return absl::NotFoundError(
          absl::StrCat(path.string(), ": it can't be written: ", std::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

int Man(const CommandInfo& root, const ManArguments& arguments) {
  if (!arguments.folder.empty()) return Complain(WritePages(root, arguments.folder));
  std::vector<std::string> words = arguments.command;
  if (!words.empty() && words[0] == root.path[0]) words.erase(words.begin());
  const CommandInfo* command = FindCommand(root, words);
  if (command == nullptr) {
    return Complain(absl::NotFoundError(
        absl::StrCat("there is no command '", absl::StrJoin(arguments.command, " "), "'")));
  }
  std::fputs(ManPage(*command, Version()).c_str(), stdout);
  return 0;
}

}  // namespace

void AddManCommand(Command app, Run* run) {
  const auto act = [app](const ManArguments& a) { return Man(DescribeCommands(app), a); };
  auto [command, a] = NewCommand<ManArguments>(
      app, run, act, "man",
      "Print the manual page of trine or of a command: trine man plugin check | man -l -");
  command.AddOption("COMMAND", a->command, "The command's words");
  command.AddOption("--write", a->folder, "Write every page into this folder instead")
      .Check(NotEmpty)
      .ValueName("DIR")
      .Excludes({"COMMAND"});
}

}  // namespace trine
