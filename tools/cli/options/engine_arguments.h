// The options of every command that runs a model: the file, the devices, and how to use them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"
#include "tools/cli/options/command_line.h"

namespace trine {

// The engine options as the command line sets them. Most options write straight into EngineOptions.
// The members below are converted by EngineOptionsOf before the engine is loaded.
struct EngineArguments : EngineOptions {
  int64_t batch = 0;   // 0: not given
  int64_t ubatch = 0;  // 0: not given
  int64_t device_timeout_s = 300;
  std::string flash_attn;       // accepted and ignored
  std::string pack_cache_text;  // "" or "false": none; "true": next to the model; else a folder
  bool list_devices = false;

  // Returns whether KV blocks are kept outside of devices.
  bool keeps_blocks() const { return !kv_store.empty() || kv_host_bytes != 0; }
  // Returns whether the engine writes files when it is destroyed.
  bool writes_files() const { return !trace.empty() || !expert_stats.empty(); }
};

// The default of --ubatch-size, as help texts say it.
inline constexpr char kUbatchDefault[] =
    "512, or up to 4096 where a GPU fetches weights for each pass";

// Adds the options. `context` says what -c counts, `by_default` what is taken without it.
void AddEngineOptions(Command command, const std::string& context, EngineArguments* arguments,
                      const std::string& by_default = "those, at most 4096");

// Adds --team, which says whose threads compute.
void AddTeamOption(Command command, TeamRequest* team);

// Adds --device, for the planner or a split mode. REQUIRES: the command has --tensor-split.
void AddDeviceOption(Command command, PlacementRequest* request);

// Adds --device-memory.
void AddMemoryOption(Command command, PlacementRequest* request);

// Adds --split-mode, --override-tensor, --cpu-moe, --n-cpu-moe and --hot-experts.
void AddSplitModeOptions(Command command, PlacementRequest* request);

// Adds --expert-stats. Help says that the file is only read if EngineOptions says so.
void AddExpertStatsOption(Command command, EngineArguments* arguments);

// Adds the options about plugins: --plugin, --plugin-option, and --numerics.
void AddPluginOptions(Command command, RegistryOptions* plugins);
// Adds --plugin-option alone.
void AddPluginOptionOption(Command command, std::vector<PluginOption>* options,
                           const std::string& help);

// Adds the options for keeping KV blocks outside of devices, to commands that read prompts.
void AddKvStoreOptions(Command command, EngineArguments* arguments);

// Adds an option whose value is a number of bytes, such as 512M.
Option AddSizeOption(Command command, const std::string& name, uint64_t* bytes,
                     const std::string& help);

// Returns the engine options that the arguments ask for. Does not set EngineOptions::progress.
EngineOptions EngineOptionsOf(const EngineArguments& arguments);

// Loads the model. Shows progress on the terminal and warnings on stderr.
absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineArguments& arguments);

// Prints the answer to --list-devices. Returns the exit code.
int PrintDevices(const EngineArguments& arguments);

// Returns a reason if `text` is empty, for Option::Check.
std::string NotEmpty(const std::string& text);
// Parses the value into the request, or returns the reason why it is wrong, for Command::AddParsed.
std::string ParseSplitOption(const std::string& text, PlacementRequest* request);

// Returns the status with `what` and a colon before its message.
absl::Status About(const std::string& what, const absl::Status& status);

// Returns the exit code of a command that ended so: 0 for OK, else that of a failure, or of a
// cancelled command, after printing "trine: message" on stderr.
int Complain(const absl::Status& status);
// Prints "trine: message" on stderr. Returns the exit code of wrong arguments.
int ComplainOfArguments(const absl::Status& status);

}  // namespace trine
