// The options of every command that runs a model: which file, where, how.
#ifndef TRINE_TOOLS_CLI_ENGINE_ARGUMENTS_H_
#define TRINE_TOOLS_CLI_ENGINE_ARGUMENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "runtime/engine.h"

namespace trine {

struct EngineArguments {
  std::string model;  // "": the one that comes with the program
  int64_t context = EngineOptions::kDefaultContext;
  int64_t batch = 2048;
  int64_t ubatch = 512;
  int64_t threads = 0;
  int64_t parallel = 1;
  int64_t gpu_layers = -1;  // -1: not given
  std::string cache_type_k = "f16";
  std::string cache_type_v = "f16";
  std::string tensor_split;
  std::vector<std::string> devices;
  std::string split_strategy = "auto";
  std::string optimize = "latency";
  std::string device_memory;
  bool allow_degraded = false;
  std::string flash_attn;
  std::string split_mode = "layer";
  std::vector<std::string> override_tensors;
  std::string dispatch = "auto";
  int64_t device_timeout = 300;  // seconds
  std::string trace;             // a file; "": none
  std::vector<std::string> plugins;
  // Set by the command, not by options.
  bool embeddings = false;
  bool hidden_rows = false;
  int64_t branches = 0;
  TapLevel taps = TapLevel::kNone;
  StageObserver observer;

  bool mlock = false;
  bool no_mmap = false;
  bool no_pack = false;
  std::string pack_cache;  // "" or "false": none; "true": beside the model; else a folder
  bool list_devices = false;
  std::string kv_store;  // a folder; "": none
  uint64_t kv_store_size = uint64_t{16} << 30;
  uint64_t kv_host = 0;
  std::string kv_store_type = "raw";
  bool kv_lossy = false;

  bool keeps_blocks() const { return !kv_store.empty() || kv_host != 0; }
};

// `context_help` describes -c, whose default is the command's own.
void AddEngineOptions(CLI::App* command, const std::string& context_help,
                      EngineArguments* arguments);

// For commands that read prompts: where KV blocks are kept beyond the devices' caches.
void AddKvStoreOptions(CLI::App* command, EngineArguments* arguments);

// An option that is a number of bytes, such as 512M.
CLI::Option* AddSizeOption(CLI::App* command, const std::string& name, uint64_t* bytes,
                           const std::string& help);

// What they ask for, without progress.
EngineOptions EngineOptionsOf(const EngineArguments& arguments);

// Loads, with progress on the terminal and warnings on stderr.
absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineArguments& arguments);

// "CPU(4L) + dGPU(28L)", or who shares the rows of it.
std::string DescribePlacement(const Engine& engine, const EngineOptions& options);

// For --list-devices.
void PrintDevices(const EngineArguments& arguments);

// For CLI::Option::check: refuses "".
std::string NotEmpty(const std::string& text);
// The same: refuses what is no tensor split of any model.
std::string IsSplit(const std::string& text);

// "trine: message" on stderr; returns the exit code of a failure, or of what was cancelled.
int Complain(const absl::Status& status);
// The same for what the command line itself got wrong.
int ComplainOfArguments(const absl::Status& status);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_ENGINE_ARGUMENTS_H_
