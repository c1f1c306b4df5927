// The trine command.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "runtime/printable.h"
#include "runtime/version.h"
#include "tools/cli/arguments.h"
#include "tools/cli/commands.h"
#include "tools/cli/parse_error.h"
#include "tools/cli/value_names.h"

namespace {

constexpr int kUsage = 2;

int Main(int argc, char** argv) {
  CLI::App app("Runs one language model over a machine's CPU, integrated GPU and discrete GPU.",
               "trine");
  app.set_version_flag("--version", trine::VersionDescription());
  app.require_subcommand(0, 1);
  trine::Run run;
  trine::AddGenerateCommand(&app, &run);
  trine::AddChatCommand(&app, &run);
  trine::AddEmbedCommand(&app, &run);
  trine::AddHeadCommand(&app, &run);
  trine::AddPerplexityCommand(&app, &run);
  trine::AddBenchCommand(&app, &run);
  trine::AddReplayCommand(&app, &run);
  trine::AddServeCommand(&app, &run);
  trine::AddPlanCommand(&app, &run);
  trine::AddCalibrateCommand(&app, &run);
  trine::AddTokenizeCommand(&app, &run);
  trine::AddShowCommand(&app, &run);
  trine::AddMakeModelCommand(&app, &run);
  trine::AddQuantizeCommand(&app, &run);
  trine::AddDetectCommand(&app, &run);
  trine::AddPluginCommand(&app, &run);
  trine::AddManCommand(&app, &run);
  trine::AddCompletionCommand(&app, &run);
  trine::NameValues(&app);
  try {
    auto arguments = trine::WriteOutArguments(argc, argv);
    if (!arguments.ok()) throw CLI::ParseError(std::string(arguments.status().message()), kUsage);
    std::reverse(arguments->begin(), arguments->end());  // as CLI11 wants them
    app.parse(*std::move(arguments));
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "trine: %s (see --help)\n",
                 trine::Printable(trine::DescribeParseError(app, wrong)).c_str());
    return kUsage;
  }
  if (!run) {
    std::fputs(app.help().c_str(), stdout);
    return argc > 1 ? kUsage : 0;
  }
  return run();
}

// A full disk or a closed pipe must not pass for success.
int Finish(int code) {
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return code;
  // What was lost earlier left no reason behind.
  std::fprintf(stderr, "trine: the output could not be written%s%s\n", flushed ? "" : ": ",
               flushed ? "" : std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Finish(Main(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "trine: %s\n", e.what());
    return 1;
  }
}
