// trine plugin check: checks that a backend keeps the ABI's rules and the contract's bits.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugins/conformance/check.h"
#include "plugins/plugin_option.h"
#include "plugins/search_path.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"

namespace trine {
namespace {

struct CheckArguments {
  std::string path;
  bool json = false;
  bool verbose = false;
  int timeout_s = 900;
  int idle_s = 20;
  std::vector<PluginOption> plugin_options;
  conformance::KitOptions kit;
};

// Returns what the plugin is opened with: --options, then each --plugin-option. Returns
// INVALID_ARGUMENT for an option for another plugin.
absl::StatusOr<std::string> OptionsToOpenWith(const CheckArguments& arguments) {
  Candidate plugin;
  plugin.path = arguments.path;
  plugin.named = true;
  for (const PluginOption& option : arguments.plugin_options) {
    if (IsFor(option, plugin)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--plugin-option ", option.plugin, ":",
                                                   option.setting, ": the plugin is called '",
                                                   NameOfFile(plugin.path), "'"));
  }
  const std::string options = OptionsFor(arguments.plugin_options, plugin);
  const bool both = !options.empty() && !arguments.kit.options.empty();
  return absl::StrCat(arguments.kit.options, both ? ";" : "", options);
}

int Check(const CheckArguments& arguments) {
  conformance::KitOptions kit = arguments.kit;
  if (auto options = OptionsToOpenWith(arguments); options.ok()) {
    kit.options = *std::move(options);
  } else {
    return ComplainOfArguments(options.status());
  }
  std::vector<std::string> looked_at;
  const std::string helper = FindProbeProgram(&looked_at);
  if (helper.empty()) {
    std::fprintf(stderr,
                 "trine: trine-probe, which loads the plugin, was not found; looked at %s\n",
                 absl::StrJoin(looked_at, ", ").c_str());
    return 1;
  }
  conformance::CheckLimits limits;
  limits.total = std::chrono::seconds(arguments.timeout_s);
  limits.idle = std::chrono::seconds(arguments.idle_s);
  const auto report = conformance::CheckPlugin(helper, arguments.path, kit, limits);
  if (!report.ok()) {
    std::fprintf(stderr, "trine: %s\n", std::string(report.status().message()).c_str());
    // A filter that names no check is a mistake on the command line.
    return absl::IsNotFound(report.status()) ? 2 : 1;
  }
  const std::string text = arguments.json ? conformance::FormatReportJson(*report)
                                          : conformance::FormatReport(*report, arguments.verbose);
  std::fputs(text.c_str(), stdout);
  return report->Ok() ? 0 : 1;
}

}  // namespace

void AddPluginCommand(Command app, Run* run) {
  Command plugin = app.AddCommand("plugin", "Work with backend plugins");
  plugin.RequireCommands(1);
  auto [check, arguments] = NewCommand<CheckArguments>(
      plugin, run, Check, "check",
      "Run the conformance kit against a plugin: life cycle, memory, ABI rules, timelines, and "
      "every op it claims against the scalar reference. Exits 0 when all is well, 1 when something "
      "is not or there was nothing to check, 2 when the filter names no check");
  check.AddOption("PATH", arguments->path, "The plugin's shared object")
      .Required()
      .ValueName("PLUGIN");
  check.AddFlag("--json", arguments->json, "Print JSON instead of text");
  check.AddFlag("-v,--verbose", arguments->verbose, "List every check, not the failures alone");
  check.AddOption("--filter", arguments->kit.filter,
                  "Only checks whose names contain this, for example op/matmul; several: "
                  "separated by commas; -op/matmul leaves those out");
  check.AddOption("--options", arguments->kit.options,
                  "Options to open the plugin with, all in one text: NAME=VALUE;NAME=VALUE");
  AddPluginOptionOption(check, &arguments->plugin_options,
                        "An option to open the plugin with, NAME=VALUE; may be repeated");
  check.AddFlag("--allow-no-device", arguments->kit.allow_no_device,
                "No usable device, or none that claims an op, is no failure: for GPU plugins "
                "on machines without the GPU");
  check.AddOption("--seed", arguments->kit.seed, "Of the random cases").ShowDefault();
  check.AddFlag("--long", arguments->kit.long_run, "More random cases, no limit on the cycles");
  check.AddOption("--timeout", arguments->timeout_s, "Seconds for everything")
      .Range(1, 86400)
      .ShowDefault();
  check.AddOption("--idle", arguments->idle_s, "Seconds without a sign of life that mean a hang")
      .Range(1, 3600)
      .ShowDefault();
}

}  // namespace trine
