#include "tools/cli/options/engine_arguments.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "dispatch/devices/inventory.h"
#include "dispatch/devices/split_spec.h"
#include "runtime/base/machine_report.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/options/describe_placement.h"
#include "tools/cli/options/read_input.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"

namespace trine {
namespace {

constexpr char kBesideModel[] = "true";  // the parser's value of a flag without one
constexpr char kNoCache[] = "false";     // the parser's value that turns a flag off

std::string AddPluginOption(const std::string& text, std::vector<PluginOption>* options) {
  auto option = ParsePluginOption(text);
  if (option.ok()) options->push_back(*std::move(option));
  return std::string(option.status().message());
}

void Warn(uint32_t level, const std::string& message) {
  const bool asked = absl::StartsWith(message, "dispatch: ");  // the user asked for these
  if (level < TRINE_LOG_WARNING && !asked) return;
  std::fprintf(stderr, "trine: %s\n", Printable(message).c_str());
}

// Returns the message of a status without what the option's name already says.
std::string Reason(const absl::Status& status, absl::string_view prefix) {
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, prefix);
  return std::string(message);
}

std::string ParseDeviceName(const std::string& text, PlacementRequest* request) {
  if (text.empty()) return NotEmpty(text);
  if (text.find(':') != std::string::npos) {
    return absl::StrCat("'", text, "' is no device; --tensor-split takes numbers of layers");
  }
  request->devices.push_back(text);
  return "";
}

std::string ParseMemoryOption(const std::string& text, PlacementRequest* request) {
  auto limits = ParseDeviceMemory(text);
  if (limits.ok()) request->memory_limits = *std::move(limits);
  return Reason(limits.status(), "");
}

std::string ParseOverrideOption(const std::string& text, PlacementRequest* request) {
  auto overrides = ParseOverrides(text);
  if (!overrides.ok()) return Reason(overrides.status(), "--override-tensor: ");
  std::move(overrides->begin(), overrides->end(), std::back_inserter(request->overrides));
  return "";
}

std::string ParseDispatchOption(const std::string& text, PlacementRequest* request) {
  const auto mode = ParseDispatch(text);
  if (mode.ok()) request->dispatch = *mode;
  return Reason(mode.status(), "");
}

// Prints where a model was placed. If no device but the CPU takes part, prints that only on a
// terminal.
void PrintPlacement(const Engine& engine, const EngineOptions& options) {
  const bool cpu_alone = engine.model()->Devices() == std::set<std::string>{"cpu"};
  if (cpu_alone && isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "Tri-Tier: %s\n", DescribePlacement(engine, options).c_str());
}

}  // namespace

void AddEngineOptions(Command command, const std::string& context, EngineArguments* a,
                      const std::string& by_default) {
  PlacementRequest* const request = &a->placement;
  command
      .AddOption("-m,--model", a->model_path,
                 "GGUF file (default: the model that comes with trine)")
      .Check(NotEmpty);
  command
      .AddOption("-c,--ctx-size", a->context,
                 absl::StrCat(context, "; 0: as many as the model was trained with (default: ",
                              by_default, ")"))
      .Range(int64_t{0}, int64_t{1} << 30);
  command.AddOption("-b,--batch-size", a->batch, "Most tokens of a prompt read in one go")
      .Range(int64_t{1}, int64_t{1} << 16)
      .DefaultText("as many as a pass may have");
  command.AddOption("--ubatch-size", a->ubatch, "Most tokens in one pass; also -ub")
      .Range(int64_t{1}, int64_t{1} << 16)
      .DefaultText(kUbatchDefault);
  command.AddOption("-t,--threads", a->threads, "CPU threads; 0: one per core")
      .Range(0, 1024)
      .ShowDefault();
  AddTeamOption(command, &a->team);
  command
      .AddOption("--cache-type-k", a->kv_type_k,
                 "Type of cached keys: f16, f32, bf16, q8_0; also -ctk")
      .OneOf({"f16", "f32", "bf16", "q8_0"})
      .ShowDefault();
  command.AddOption("--cache-type-v", a->kv_type_v, "Type of cached values; also -ctv")
      .OneOf({"f16", "f32", "bf16", "q8_0"})
      .ShowDefault();
  command.AddParsed(
      "--tensor-split",
      [request](const std::string& text) { return ParseSplitOption(text, request); },
      "Layers per tier or device in model order, such as cpu:4,igpu:12,dgpu:16; "
      "units: 16L layers, 12G bytes, 50%; also -ts");
  AddDeviceOption(command, request);
  command
      .AddOption("--gpu-layers", request->gpu_layers,
                 "Layers on the GPU; without a GPU they stay on the CPU; also -ngl")
      .Range(0, 100000)
      .Excludes({"--tensor-split", "--device"});
  command
      .AddChoice("--split-strategy", request->strategy,
                 {{"auto", Strategy::kAuto},
                  {"memory", Strategy::kMemory},
                  {"balanced", Strategy::kBalanced}},
                 "Where layers go when nothing else says so: auto (least predicted time), memory "
                 "(GPUs filled in proportion to their memory) or balanced (stages of equal time)")
      .Excludes({"--tensor-split"})
      .ShowDefault();
  command
      .AddChoice(
          "--optimize", request->optimize,
          {{"latency", Optimize::kLatency}, {"throughput", Optimize::kThroughput}},
          "What auto, and no other strategy, makes least: the latency of one request, or what each "
          "costs with many in flight (throughput)")
      .Check([request](const std::string&) -> std::string {  // the strategy is parsed before it
        return request->strategy == Strategy::kAuto ? "" : "it goes with --split-strategy auto";
      })
      .ShowDefault();
  AddMemoryOption(command, request);
  command.AddFlag("--allow-degraded", request->allow_degraded,
                  "Go on without tiers or devices that are named and not there");
  command
      .AddOption("--flash-attn", a->flash_attn,
                 "on, off or auto: taken for other engines' sake; there is one attention here; "
                 "also -fa")
      .OneOf({"on", "off", "auto", "1", "0"});
  AddSplitModeOptions(command, request);
  AddExpertStatsOption(command, a);
  command
      .AddParsed(
          "--dispatch",
          [request](const std::string& text) { return ParseDispatchOption(text, request); },
          "Which passes may leave the devices that their layers are on: those for which that is "
          "predicted to be faster (auto), of these the ones that read prompts (prompts), none "
          "(off), or passes of so many tokens and more")
      .ValueName("auto|prompts|off|TOKENS")
      .DefaultText("auto where the planner places layers, else prompts");
  command
      .AddOption(
          "--device-timeout", a->device_timeout_s,
          "Seconds after which a device that does not come back from a pass, or from a call while "
          "the model is loaded, counts as lost")
      .Range(int64_t{1}, int64_t{86400})
      .ShowDefault();
  command
      .AddOption("--trace", a->trace,
                 "Write a timeline of passes, copies and waits to this file, for Perfetto")
      .Check(NotEmpty)
      .ValueName("FILE");
  AddPluginOptions(command, &a->plugins);
  command.AddFlag("--mlock", a->lock_memory, "Keep the model from being swapped out");
  command.AddFlagOff("--no-mmap", a->use_mmap, "Read the file into memory instead of mapping it");
  command.AddFlagOff("--no-pack", a->pack,
                     "Keep weights as they are in the file: loads faster, runs slower");
  command
      .AddFlag("--pack-cache", a->pack_cache_text,
               "Keep packed weights in a file between runs, MODEL.trine-pack beside the model; "
               "--pack-cache=DIR: in that folder; "
               "--pack-cache=false: not at all")
      .OptionText("[=DIR]");
  command.AddFlag("--list-devices", a->list_devices, "Print the devices there are and exit");
}

void AddTeamOption(Command command, TeamRequest* team) {
  command
      .AddChoice("--team", team->kind, {{"own", TeamKind::kOwn}, {"openmp", TeamKind::kOpenMp}},
                 "Whose threads compute on the CPU: Trine's (own), or those of OpenMP, by its "
                 "variables such as OMP_NUM_THREADS and OMP_PLACES (openmp). The results are the "
                 "same")
      .DefaultText("own, or what TRINE_TEAM says");
}

void AddDeviceOption(Command command, PlacementRequest* request) {
  command
      .AddParsedList(
          "--device", [request](const std::string& text) { return ParseDeviceName(text, request); },
          "Keep to these tiers or devices, separated by commas; also -dev")
      .Delimiter(',')
      .Excludes({"--tensor-split"});
}

void AddMemoryOption(Command command, PlacementRequest* request) {
  command.AddParsed(
      "--device-memory",
      [request](const std::string& text) { return ParseMemoryOption(text, request); },
      "Most memory that devices are given, such as dgpu:2G,igpu:512M");
}

void AddSplitModeOptions(Command command, PlacementRequest* request) {
  command
      .AddChoice(
          "--split-mode", request->mode,
          {{"layer", SplitMode::kLayer}, {"row", SplitMode::kRow}, {"none", SplitMode::kNone}},
          "What devices share: whole layers (layer), rows of every matrix (row), or "
          "nothing, with one device for all (none); also -sm")
      .ShowDefault();
  command
      .AddParsedList(
          "--override-tensor",
          [request](const std::string& text) { return ParseOverrideOption(text, request); },
          "Matrices whose names the expression finds go to the device: "
          "REGEX=DEVICE[,REGEX=DEVICE...]; the first that finds one has it; may be "
          "repeated; also -ot")
      .OneValueEach();
  command.AddFlagTo("--cpu-moe", request->cpu_experts, PlacementRequest::kAllLayers,
                    "The experts of all layers go to the CPU; also -cmoe");
  command
      .AddOption(
          "--n-cpu-moe", request->cpu_experts,
          "The experts of the first N layers go to the CPU, the rest where it would go; also "
          "-ncmoe")
      .Range(int64_t{0}, int64_t{1} << 20)
      .Excludes({"--cpu-moe"})
      .ValueName("N");
  command
      .AddOption("--hot-experts", request->hot_experts,
                 "Of the experts on the CPU, the device of each layer has N as well: those that "
                 "tokens choose most. A device that reads the file's pages computes such a part of "
                 "the experts without copies. 0: none")
      .Range(int64_t{0}, int64_t{1} << 20)
      .DefaultText("none, or as many as pay by the counts of --expert-stats");
}

void AddExpertStatsOption(Command command, EngineArguments* a) {
  command
      .AddOption(
          "--expert-stats", a->expert_stats,
          a->expert_stats_read_only
              ? "Counts of chosen experts, a file of generate's --expert-stats: they say "
                "which experts begin in slots, and how many slots pay. It is only read"
              : "Keep counts of chosen experts in this file. It is read first: it says which "
                "experts begin in slots, and how many slots pay. The counts of this run are "
                "added at the end")
      .Check(NotEmpty)
      .ValueName("FILE");
}

void AddPluginOptions(Command command, RegistryOptions* plugins) {
  command
      .AddChoice(
          "--numerics", plugins->numerics,
          {{"exact", uint32_t{TRINE_NUMERICS_EXACT}}, {"fast", uint32_t{TRINE_NUMERICS_FAST}}},
          "Which devices and ops may be used: those that give the same bits everywhere "
          "(exact), or also those whose results are only near them (fast)")
      .ShowDefault();
  command
      .AddOption("--plugin", plugins->search.explicit_paths,
                 "A backend plugin, or a folder of them, to look at first; may be repeated")
      .Check(NotEmpty);
  AddPluginOptionOption(
      command, &plugins->plugin_options,
      "An option for a plugin, [PLUGIN:]NAME=VALUE; without a name it is for those that --plugin "
      "gives; may be repeated");
}

void AddPluginOptionOption(Command command, std::vector<PluginOption>* options,
                           const std::string& help) {
  command
      .AddParsedList(
          "--plugin-option",
          [options](const std::string& text) { return AddPluginOption(text, options); }, help)
      .OneValueEach();
}

Option AddSizeOption(Command command, const std::string& name, uint64_t* bytes,
                     const std::string& help) {
  return command.AddOption(name, *bytes, help).AsSize();
}

void AddKvStoreOptions(Command command, EngineArguments* a) {
  command
      .AddOption("--kv-store", a->kv_store,
                 "Keep what has been read of texts in this folder: a later run that begins with "
                 "the same tokens does not read them again (docs/kv.md)")
      .Check(NotEmpty)
      .ValueName("DIR");
  AddSizeOption(command, "--kv-store-size", &a->kv_store_bytes, "Most bytes in that folder")
      .Needs("--kv-store")
      .DefaultText("16G");
  AddSizeOption(
      command, "--kv-host", &a->kv_host_bytes,
      "Most bytes of memory for blocks that the devices' caches have no room for; 0: none")
      .ShowDefault();
  command
      .AddOption("--kv-store-type", a->kv_store_form,
                 "How blocks are kept there: as they are (raw), or smaller, with fewer bits; see "
                 "--kv-lossy")
      .OneOf({"raw", "q8_0", "q4_0", "mxfp4"})
      .ShowDefault();
  command.AddFlag("--kv-lossy", a->kv_lossy,
                  "Blocks kept with fewer bits may be used: answers are then near the exact ones, "
                  "no more");
}

EngineOptions EngineOptionsOf(const EngineArguments& a) {
  EngineOptions options = a;
  if (options.model_path.empty()) options.model_path = DefaultModelPath();
  options.batch_tokens = a.ubatch;
  if (a.batch != 0) {
    options.batch_tokens = std::min(a.batch, a.ubatch);
    options.most_batch_tokens = std::min(a.batch, options.most_batch_tokens);
  }
  options.pack_cache = !a.pack_cache_text.empty() && a.pack_cache_text != kNoCache;
  if (a.pack_cache_text != kBesideModel) options.pack_cache_folder = a.pack_cache_text;
  options.stage_limit = std::chrono::seconds(a.device_timeout_s);
  options.log = Warn;
  return options;
}

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineArguments& a) {
  EngineOptions options = EngineOptionsOf(a);
  Progress progress("loading");
  std::optional<InterruptFlag> interrupt;
  if (options.pack_cache) interrupt.emplace();  // leaves no unfinished file behind
  options.progress = [&](double fraction) {
    return progress.Update(fraction) && !(interrupt && interrupt->raised());
  };
  auto engine = Engine::Load(options);
  if (engine.ok() && interrupt && interrupt->raised()) {
    return absl::CancelledError("loading was cancelled");
  }
  progress.Clear();
  if (engine.ok()) PrintPlacement(**engine, options);
  return engine;
}

int PrintDevices(const EngineArguments& a) {
  MachineOptions machine;
  machine.registry = a.plugins;
  const Inventory inventory = DescribeMachine(machine);
  if (const std::string& unused = inventory.registry.unused_options; !unused.empty()) {
    return Complain(absl::InvalidArgumentError(unused));
  }
  for (const std::string& note : inventory.registry.notes) Warn(TRINE_LOG_WARNING, note);
  for (const InventoryDevice& d : inventory.devices) {
    if (!d.used && !d.on_request) continue;
    std::printf("%s: %s (%s)\n", d.tier_name.c_str(), d.chip.c_str(), OwnName(d).c_str());
  }
  const std::string idle = IdlePlugins(inventory);
  absl::string_view plugins = idle;
  if (absl::ConsumePrefix(&plugins, "; ")) {
    Warn(TRINE_LOG_WARNING, absl::StrCat("without a device: ", plugins));
  }
  return 0;
}

std::string NotEmpty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

std::string ParseSplitOption(const std::string& text, PlacementRequest* request) {
  if (text.empty()) return NotEmpty(text);
  auto split = ParseSplit(text);
  if (split.ok()) request->split = *std::move(split);
  return Reason(split.status(), "tensor split: ");
}

absl::Status About(const std::string& what, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

int Complain(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "trine: %s\n", Printable(std::string(status.message())).c_str());
  return absl::IsCancelled(status) ? kInterrupted : 1;
}

int ComplainOfArguments(const absl::Status& status) {
  std::fprintf(stderr, "trine: %s (see --help)\n",
               Printable(std::string(status.message())).c_str());
  return 2;
}

}  // namespace trine
