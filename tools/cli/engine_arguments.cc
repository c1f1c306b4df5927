#include "tools/cli/engine_arguments.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "dispatch/find_device.h"
#include "dispatch/split_spec.h"
#include "runtime/machine_report.h"
#include "runtime/printable.h"
#include "runtime/split_mode.h"
#include "tools/cli/default_model.h"
#include "tools/cli/progress.h"
#include "tools/cli/signals.h"

namespace trine {
namespace {

constexpr char kBesideModel[] = "true";  // what a flag without a value has
constexpr char kNoCache[] = "false";     // what turns any flag off

void Warn(uint32_t level, const std::string& message) {
  const bool asked = absl::StartsWith(message, "dispatch: ");  // it is said to those alone who did
  if (level < TRINE_LOG_WARNING && !asked) return;
  std::fprintf(stderr, "trine: %s\n", Printable(message).c_str());
}

// For CLI::Option::check, of each of --device.
std::string IsDevice(const std::string& text) {
  if (text.empty()) return NotEmpty(text);
  return text.find(':') == std::string::npos
             ? ""
             : absl::StrCat("'", text, "' is no device; --tensor-split takes numbers of layers");
}

// The same, of --device-memory.
std::string IsDeviceMemory(const std::string& text) {
  return std::string(ParseDeviceMemory(text).status().message());
}

std::vector<LayerRange> RangesOf(const Engine& engine) {
  std::vector<LayerRange> ranges;
  for (const SegmentPlace& p : engine.model()->places()) {
    ranges.push_back({p.device_name, static_cast<int>(p.span.begin), static_cast<int>(p.span.end),
                      p.span.embedding, p.span.head});
  }
  return ranges;
}

bool SharesRows(const Engine& engine, const EngineOptions& options) {
  return options.split_mode == SplitMode::kRow && engine.model()->StageDevices(0).size() > 1;
}

// Where a model went. That it is on the CPU goes without saying, but for people.
void PrintPlacement(const Engine& engine, const EngineOptions& options) {
  const std::vector<LayerRange> ranges = RangesOf(engine);
  const bool cpu_alone = std::all_of(ranges.begin(), ranges.end(),
                                     [](const LayerRange& range) { return range.device == "cpu"; });
  if (!SharesRows(engine, options) && cpu_alone && isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "Tri-Tier: %s\n", DescribePlacement(engine, options).c_str());
}

// For sizes.
std::string IsNotNegative(const std::string& text) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "-")
             ? absl::StrCat("'", text, "' is below 0")
             : "";
}

// For CLI::Option::check, of --dispatch.
std::string IsDispatch(const std::string& text) {
  return std::string(ParseDispatch(text).status().message());
}

// For CLI::Option::check, of --override-tensor.
std::string IsOverride(const std::string& text) {
  const absl::Status status = ParseOverrides(text).status();
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, "tensor override: ");
  return std::string(message);
}

}  // namespace

void AddEngineOptions(CLI::App* command, const std::string& context_help, EngineArguments* a) {
  command
      ->add_option("-m,--model", a->model, "GGUF file (default: the model that comes with trine)")
      ->check(NotEmpty);
  command->add_option("-c,--ctx-size", a->context, context_help)
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  command->add_option("-b,--batch-size", a->batch, "Most tokens of a prompt read in one go")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16))
      ->capture_default_str();
  command->add_option("--ubatch-size", a->ubatch, "Most tokens in one pass; also -ub")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16))
      ->capture_default_str();
  command->add_option("-t,--threads", a->threads, "CPU threads; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      ->add_option("--cache-type-k", a->cache_type_k,
                   "Type of cached keys: f16, f32, bf16, q8_0; also -ctk")
      ->check(CLI::IsMember({"f16", "f32", "bf16", "q8_0"}))
      ->capture_default_str();
  command->add_option("--cache-type-v", a->cache_type_v, "Type of cached values; also -ctv")
      ->check(CLI::IsMember({"f16", "f32", "bf16", "q8_0"}))
      ->capture_default_str();
  CLI::Option* split =
      command
          ->add_option("--tensor-split", a->tensor_split,
                       "Layers per tier or device in model order, such as cpu:4,igpu:12,dgpu:16; "
                       "units: 16L layers, 12G bytes, 50%; also -ts")
          ->check(IsSplit);
  CLI::Option* device =
      command
          ->add_option("--device", a->devices,
                       "Keep to these tiers or devices, separated by commas; also -dev")
          ->delimiter(',')
          ->check(IsDevice)
          ->excludes(split);
  command
      ->add_option("--gpu-layers", a->gpu_layers,
                   "Layers on the GPU; without a GPU they stay on the CPU; also -ngl")
      ->check(CLI::Range(0, 100000))
      ->excludes(split)
      ->excludes(device);
  command
      ->add_option("--split-strategy", a->split_strategy,
                   "Where layers go when nothing else says so: auto (least predicted time), memory "
                   "(GPUs filled in proportion to their memory) or balanced (stages of equal time)")
      ->check(CLI::IsMember({"auto", "memory", "balanced"}))
      ->excludes(split)
      ->capture_default_str();
  command
      ->add_option(
          "--optimize", a->optimize,
          "What auto, and no other strategy, makes least: the latency of one request, or what each "
          "costs with many in flight (throughput)")
      ->check(CLI::IsMember({"latency", "throughput"}))
      ->check([a](const std::string&) -> std::string {  // the strategy is read before it
        return a->split_strategy == "auto" ? "" : "it goes with --split-strategy auto";
      })
      ->capture_default_str();
  command
      ->add_option("--device-memory", a->device_memory,
                   "Most memory that devices are given, such as dgpu:2G,igpu:512M")
      ->check(IsDeviceMemory);
  command->add_flag("--allow-degraded", a->allow_degraded,
                    "Go on without tiers or devices that are named and not there");
  command
      ->add_option("--flash-attn", a->flash_attn,
                   "on, off or auto: taken for other engines' sake; there is one attention here; "
                   "also -fa")
      ->check(CLI::IsMember({"on", "off", "auto", "1", "0"}));
  command
      ->add_option("--split-mode", a->split_mode,
                   "What devices share: whole layers (layer), rows of every matrix (row), or "
                   "nothing, with one device for all (none); also -sm")
      ->check(CLI::IsMember({"layer", "row", "none"}))
      ->capture_default_str();
  command
      ->add_option("--override-tensor", a->override_tensors,
                   "Matrices whose names the expression finds go to the device: "
                   "REGEX=DEVICE[,REGEX=DEVICE...]; the first that finds one has it; may be "
                   "repeated; also -ot")
      ->allow_extra_args(false)
      ->check(IsOverride);
  command
      ->add_option("--dispatch", a->dispatch,
                   "Whether large passes may leave the devices that their layers are on: auto "
                   "(where that is predicted to be faster), off, or from how many tokens on")
      ->check(IsDispatch)
      ->type_name("auto|off|TOKENS")
      ->capture_default_str();
  command
      ->add_option(
          "--device-timeout", a->device_timeout,
          "Seconds after which a device that does not come back from a pass, or from a call while "
          "the model is loaded, counts as lost")
      ->check(CLI::Range(int64_t{1}, int64_t{86400}))
      ->capture_default_str();
  command
      ->add_option("--trace", a->trace,
                   "Write a timeline of passes, copies and waits to this file, for Perfetto")
      ->check(NotEmpty)
      ->type_name("FILE");
  command->add_option("--plugin", a->plugins,
                      "A backend plugin, or a folder of them, to look at first; may be repeated");
  command->add_flag("--mlock", a->mlock, "Keep the model from being swapped out");
  command->add_flag("--no-mmap", a->no_mmap, "Read the file into memory instead of mapping it");
  command->add_flag("--no-pack", a->no_pack,
                    "Keep weights as they are in the file: loads faster, runs slower");
  command
      ->add_flag("--pack-cache", a->pack_cache,
                 "Keep packed weights in a file between runs, MODEL.trine-pack beside the model; "
                 "--pack-cache=DIR: in that folder; "
                 "--pack-cache=false: not at all")
      ->option_text("[=DIR]");
  command->add_flag("--list-devices", a->list_devices, "Print the devices there are and exit");
}

CLI::Option* AddSizeOption(CLI::App* command, const std::string& name, uint64_t* bytes,
                           const std::string& help) {
  // What is added last is looked at first. Numbers below 0 would wrap.
  return command->add_option(name, *bytes, help)
      ->transform(CLI::AsSizeValue(false))
      ->transform(CLI::Validator(IsNotNegative, ""))
      ->type_name("SIZE");
}

void AddKvStoreOptions(CLI::App* command, EngineArguments* a) {
  command
      ->add_option("--kv-store", a->kv_store,
                   "Keep what has been read of texts in this folder: a later run that begins with "
                   "the same tokens does not read them again (docs/kv.md)")
      ->check(NotEmpty)
      ->type_name("DIR");
  AddSizeOption(command, "--kv-store-size", &a->kv_store_size, "Most bytes in that folder")
      ->needs("--kv-store")
      ->default_str("16G");
  AddSizeOption(
      command, "--kv-host", &a->kv_host,
      "Most bytes of memory for blocks that the devices' caches have no room for; 0: none")
      ->capture_default_str();
  command
      ->add_option("--kv-store-type", a->kv_store_type,
                   "How blocks are kept there: as they are (raw), or smaller, with fewer bits; see "
                   "--kv-lossy")
      ->check(CLI::IsMember({"raw", "q8_0", "q4_0", "mxfp4"}))
      ->capture_default_str();
  command->add_flag(
      "--kv-lossy", a->kv_lossy,
      "Blocks kept with fewer bits may be used: answers are then near the exact ones, "
      "no more");
}

EngineOptions EngineOptionsOf(const EngineArguments& a) {
  EngineOptions options;
  options.model_path = a.model.empty() ? DefaultModelPath() : a.model;
  options.context = a.context;
  options.batch_tokens = std::min(a.batch, a.ubatch);
  options.max_sequences = a.parallel;
  options.embeddings = a.embeddings;
  options.hidden_rows = a.hidden_rows;
  options.branches = a.branches;
  options.threads = static_cast<uint32_t>(a.threads);
  options.kv_type_k = a.cache_type_k;
  options.kv_type_v = a.cache_type_v;
  options.tensor_split = a.tensor_split;
  options.devices = a.devices;
  options.strategy = a.split_strategy == "memory"     ? Strategy::kMemory
                     : a.split_strategy == "balanced" ? Strategy::kBalanced
                                                      : Strategy::kAuto;
  options.optimize = a.optimize == "throughput" ? Optimize::kThroughput : Optimize::kLatency;
  options.device_memory = a.device_memory;
  options.allow_degraded = a.allow_degraded;
  options.gpu_layers = a.gpu_layers;
  options.split_mode = a.split_mode == "row"    ? SplitMode::kRow
                       : a.split_mode == "none" ? SplitMode::kNone
                                                : SplitMode::kLayer;
  options.override_tensors = a.override_tensors;
  options.dispatch = ParseDispatch(a.dispatch).value_or(DispatchMode{});  // it has been checked
  options.use_mmap = !a.no_mmap;
  options.lock_memory = a.mlock;
  options.pack = !a.no_pack;
  options.pack_cache = !a.pack_cache.empty() && a.pack_cache != kNoCache;
  if (a.pack_cache != kBesideModel) options.pack_cache_folder = a.pack_cache;
  options.plugins.search.explicit_paths = a.plugins;
  options.kv_store = a.kv_store;
  options.kv_store_bytes = a.kv_store_size;
  options.kv_host_bytes = a.kv_host;
  options.kv_store_form = a.kv_store_type;
  options.kv_lossy = a.kv_lossy;
  options.stage_limit = std::chrono::seconds(a.device_timeout);
  options.trace = a.trace;
  options.taps = a.taps;
  options.observer = a.observer;
  options.log = Warn;
  return options;
}

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineArguments& a) {
  EngineOptions options = EngineOptionsOf(a);
  Progress progress("loading");
  std::optional<InterruptFlag> interrupt;
  if (options.pack_cache) interrupt.emplace();  // no unfinished file is left behind
  options.progress = [&](double fraction) {
    progress.Update(fraction);
    return !interrupt || !interrupt->raised();
  };
  auto engine = Engine::Load(options);
  if (engine.ok() && interrupt && interrupt->raised()) {
    return absl::CancelledError("loading was cancelled");
  }
  progress.Clear();
  if (engine.ok()) PrintPlacement(**engine, options);
  return engine;
}

std::string DescribePlacement(const Engine& engine, const EngineOptions& options) {
  if (!SharesRows(engine, options)) return PlacementText(RangesOf(engine));
  return absl::StrCat("rows of ", RowsText(engine.model()->StageDevices(0),
                                           static_cast<int>(engine.config().n_layers)));
}

void PrintDevices(const EngineArguments& a) {
  MachineOptions machine;
  machine.registry.search.explicit_paths = a.plugins;
  const Inventory inventory = DescribeMachine(machine);
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
}

std::string NotEmpty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

std::string IsSplit(const std::string& text) {
  if (text.empty()) return NotEmpty(text);
  const absl::Status status = ParseSplit(text).status();
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, "tensor split: ");  // the option's name stands there already
  return std::string(message);
}

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "trine: %s\n", Printable(std::string(status.message())).c_str());
  return absl::IsCancelled(status) ? kInterrupted : 1;
}

int ComplainOfArguments(const absl::Status& status) {
  std::fprintf(stderr, "trine: %s (see --help)\n",
               Printable(std::string(status.message())).c_str());
  return 2;
}

}  // namespace trine
