#include "tools/cli/commands/run_commands.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>

#include "runtime/base/version.h"
#include "tools/cli/options/command_line.h"

namespace trine {
namespace {

constexpr int kUsage = 2;

int ParseAndRun(int argc, char** argv, std::span<const AddCommand> commands) {
  CommandLine line("trine",
                   "Runs one language model over a machine's CPU, integrated GPU and discrete GPU.",
                   VersionDescription());
  Run run;
  for (const AddCommand add : commands) add(line.root(), &run);
  if (const std::optional<int> code = line.Parse(argc, argv)) return *code;
  if (!run) {
    std::fputs(line.Help().c_str(), stdout);
    return argc > 1 ? kUsage : 0;
  }
  return run();
}

// Makes a full disk or a closed pipe a failure.
int Finish(int code) {
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return code;
  // An earlier failure left no errno behind.
  std::fprintf(stderr, "trine: the output could not be written%s%s\n", flushed ? "" : ": ",
               flushed ? "" : std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace

int RunCommands(int argc, char** argv, std::span<const AddCommand> commands) {
  try {
    return Finish(ParseAndRun(argc, argv, commands));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "trine: %s\n", e.what());
    return 1;
  }
}

}  // namespace trine
