#include "runtime/engine/model_setup.h"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/base/machine_report.h"
#include "runtime/model/arch/read_model.h"

namespace trine {
namespace {

constexpr int64_t kMaxBatchTokens = 1 << 16;
constexpr int64_t kUsualBatchTokens = 512;
constexpr int64_t kMaxSequences = 1024;
constexpr uint32_t kMaxThreads = 1024;
// The most bytes of output rows in a pass, but at least one row for each sequence.
constexpr int64_t kOutputBytes = int64_t{64} << 20;

absl::Status CheckSizes(const EngineOptions& options) {
  const auto within = [](const char* what, int64_t value, int64_t min, int64_t max) {
    if (value >= min && value <= max) return absl::OkStatus();
    return Invalid(what, " is ", value, ": it must lie between ", min, " and ", max);
  };
  absl::Status s = within("the batch size", options.batch_tokens, 0, kMaxBatchTokens);
  if (s.ok()) s = within("the largest batch size", options.most_batch_tokens, 1, kMaxBatchTokens);
  if (s.ok()) s = within("the number of sequences", options.max_sequences, 1, kMaxSequences);
  if (s.ok()) {
    s = within("the number of branches", options.branches, 0,
               kMaxSequences - options.max_sequences);
  }
  if (s.ok()) s = within("the size of mixed passes", options.mixed_tokens, 0, kMaxBatchTokens);
  if (s.ok()) s = within("the number of threads", options.threads, 0, kMaxThreads);
  if (s.ok() && options.context != EngineOptions::kDefaultContext) {
    s = within("the context size", options.context, 0, int64_t{1} << 30);
  }
  if (s.ok() && options.expert_hits != nullptr && !options.expert_stats.empty()) {
    s = absl::InvalidArgumentError(
        "counts of experts are given, and a file that keeps them: it must be one of both");
  }
  if (s.ok() && options.model_path.empty()) {
    s = absl::InvalidArgumentError("no model file was named");
  }
  return s;
}

absl::StatusOr<fault::FaultSpec> ReadFaults(const EngineOptions& options) {
  const char* variable =
      options.plugins.search.use_environment ? std::getenv("TRINE_FAULT") : nullptr;
  auto spec = fault::FaultSpec::Parse(variable != nullptr ? variable : options.faults);
  if (spec.ok()) return spec;
  return Invalid(variable != nullptr ? "TRINE_FAULT: " : "faults: ", spec.status().message());
}

absl::StatusOr<TeamRequest> TeamOf(const EngineOptions& options) {
  return ResolveTeam(options.team, static_cast<uint32_t>(options.threads),
                     options.plugins.search.use_environment);
}

// `batch_tokens`: the most tokens of a pass.
absl::StatusOr<SegmentLimits> Limits(const EngineOptions& options, int64_t batch_tokens,
                                     const ModelConfig& config) {
  SegmentLimits limits;
  limits.max_context = options.context;
  if (options.context == EngineOptions::kDefaultContext) {
    limits.max_context = std::min(config.n_ctx_train, EngineOptions::kDefaultContextLimit);
  } else if (options.context == 0) {
    limits.max_context = config.n_ctx_train;
  }
  if (limits.max_context * options.max_sequences + options.branches * kBlockPositions >
      std::numeric_limits<int32_t>::max()) {
    return Invalid("a context of ", limits.max_context, " for ", options.max_sequences,
                   " sequences is more positions than can be numbered");
  }
  const auto type_k = ParseKvType(options.kv_type_k);
  if (!type_k.ok()) return type_k.status();
  const auto type_v = ParseKvType(options.kv_type_v);
  if (!type_v.ok()) return type_v.status();
  limits.kv_type_k = *type_k;
  limits.kv_type_v = *type_v;
  limits.numerics = options.plugins.numerics;
  if ((limits.kv_type_k == TRINE_DTYPE_Q8_KV && config.head_dim_k % 32 != 0) ||
      (limits.kv_type_v == TRINE_DTYPE_Q8_KV && config.head_dim_v % 32 != 0)) {
    return Invalid("a q8_0 cache needs heads of a multiple of 32 values; this model has ",
                   config.head_dim_k, " and ", config.head_dim_v);
  }
  limits.max_sequences = options.max_sequences + options.branches;
  limits.max_tokens = std::min(batch_tokens, limits.max_context * options.max_sequences);
  limits.max_tokens = std::max(limits.max_tokens, limits.max_sequences);
  limits.branches = options.branches;
  limits.kv_blocks = limits.max_blocks_per_sequence() * options.max_sequences + options.branches;
  limits.count_experts = !options.expert_stats.empty() && !options.expert_stats_read_only;
  limits.embeddings = options.embeddings;
  limits.hidden_rows = options.hidden_rows && !options.embeddings;
  if (options.embeddings) {
    limits.kv_blocks = std::max(limits.max_blocks_per_sequence(), limits.max_sequences);
  }
  const int64_t row_bytes =
      (options.embeddings ? config.n_embd : config.n_vocab) * static_cast<int64_t>(sizeof(float));
  limits.max_output_rows =
      std::clamp<int64_t>(kOutputBytes / row_bytes, limits.max_sequences, limits.max_tokens);
  return limits;
}

// Returns whether the options name devices, which may be software, or ask for a report of all
// devices.
bool AsksForDevices(const EngineOptions& options) {
  const PlacementRequest& asked = options.placement;
  const bool cpu_alone = std::all_of(asked.devices.begin(), asked.devices.end(),
                                     [](const std::string& name) { return name == "cpu"; });
  return !cpu_alone || !asked.split.empty() || !asked.overrides.empty() ||
         !asked.memory_limits.empty() || asked.gpu_layers > 0 || options.explain ||
         !options.faults.empty() ||
         (options.plugins.search.use_environment && std::getenv("TRINE_FAULT") != nullptr);
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> MakeTokenizer(const TokenizerData& data,
                                                               const ModelConfig& config) {
  auto tokenizer = Tokenizer::Create(data);
  if (tokenizer.ok() && (*tokenizer)->vocab_size() != config.n_vocab) {
    return Invalid("the tokenizer has ", (*tokenizer)->vocab_size(),
                   " tokens, token_embd.weight has ", config.n_vocab, " rows");
  }
  return tokenizer;
}

std::unique_ptr<Placer> MakePlacer(const EngineOptions& options, const ModelSetup& setup,
                                   const SegmentLimits& limits, LogSink log) {
  return std::make_unique<Placer>(
      options.placement,
      PlacerOptions{options.pack, options.plugins.search.use_environment, std::move(log),
                    options.taps != TapLevel::kNone, setup.hits},
      setup.file, setup.config, limits, setup.devices.get());
}

// Makes the counts of the model's experts, and reads those that a file has.
absl::Status MakeHits(const EngineOptions& options, ModelSetup* setup) {
  const ModelConfig& config = setup->config;
  setup->hits = options.expert_hits != nullptr
                    ? options.expert_hits
                    : std::make_shared<ExpertHits>(config.n_layers, config.experts.count);
  const ExpertHits& hits = *setup->hits;
  if (hits.layers() != config.n_layers || hits.experts() != config.experts.count) {
    return Invalid("the counts of experts are those of another model: ", hits.layers(),
                   " layers with ", hits.experts(), " experts each");
  }
  if (options.expert_stats.empty()) return absl::OkStatus();
  auto stats = ExpertStats::Open(options.expert_stats, *setup->file, config, setup->hits.get(),
                                 options.expert_stats_read_only);
  if (!stats.ok()) return stats.status();
  if (options.expert_stats_read_only) return absl::OkStatus();
  setup->expert_stats = *std::move(stats);
  return absl::OkStatus();
}

// Returns whether slots for experts are worth a thought: the planner decides, counts say which
// experts tokens choose, and some part of the model is in main memory although there is a GPU.
bool MayChooseSlots(const EngineOptions& options, const ModelSetup& setup) {
  const PlacementRequest& asked = options.placement;
  const bool decides = asked.planned() && asked.overrides.empty() && !asked.hot_experts &&
                       asked.cpu_experts == 0 && asked.strategy == Strategy::kAuto &&
                       asked.optimize == Optimize::kLatency;
  const bool counted = !options.expert_stats.empty() && setup.config.experts.count > 1 &&
                       setup.hits->Snapshot().choices() > 0;
  if (!decides || !counted || !setup.file->mapped() || options.taps != TapLevel::kNone)
    return false;
  const auto places = MakePlacer(options, setup, setup.limits, nullptr)->Choose();
  if (!places.ok()) return true;
  bool cpu = !places->tensors.empty(), gpu = false;
  for (const LayerRange& range : places->ranges) {
    (range.device == "cpu" ? cpu : gpu) = true;
  }
  return cpu && gpu;
}

// Lets the GPUs have slots for experts where the counts make that the fastest prediction: as many
// in each layer as are best. Loading reports errors.
void ChooseSlots(const ModelSetup& setup, EngineOptions* options) {
  if (!MayChooseSlots(*options, setup)) return;
  EngineOptions tried = *options;
  std::optional<int64_t> least;
  int64_t best = 0;
  const auto time = [&](int64_t slots) {
    tried.placement.hot_experts = slots;
    const auto predicted = MakePlacer(tried, setup, setup.limits, nullptr)->Predict({});
    if (!predicted.ok() || (least && predicted->request_ns >= *least)) return;
    least = predicted->request_ns;
    best = slots;
  };
  const int64_t experts = setup.config.experts.count;
  time(0);  // without slots
  int64_t step = std::max<int64_t>(experts / 4, 1);
  for (int64_t slots = step; slots < experts; slots += step) time(slots);
  // Then as near to the best number as takes few tries.
  for (int tries = 0; tries < 3 && step > 1 && best > 0; ++tries) {
    step = (step + 1) / 2;
    const int64_t middle = best;
    if (middle > step) time(middle - step);
    if (middle + step < experts) time(middle + step);
  }
  options->placement.hot_experts = best;
}

// Gives passes more tokens where a device fetches weights for each of them: a long prompt then
// fetches them fewer times. Larger passes take more scratch, so that fewer weights may be on the
// device, which the prediction weighs.
void ChoosePassSize(const EngineOptions& options, ModelSetup* setup) {
  // The request that placements are chosen for, with a prompt and an answer that are both longer by
  // the same factor.
  NominalRequest request;
  const int factor = static_cast<int>(
      std::min(options.most_batch_tokens, setup->limits.max_context) / request.prompt_tokens);
  if (factor < 2) return;
  request.prompt_tokens *= factor;
  request.written_tokens *= factor;
  std::optional<int64_t> least;
  int64_t tokens = setup->limits.max_tokens;
  for (SegmentLimits limits = setup->limits; limits.max_tokens <= request.prompt_tokens;) {
    const auto predicted = MakePlacer(options, *setup, limits, nullptr)->Predict(request);
    // Loading reports errors. Where no weights are fetched, larger passes gain little.
    if (!predicted.ok() || !predicted->fetches) break;
    if (!least || predicted->request_ns < *least) {
      least = predicted->request_ns;
      tokens = limits.max_tokens;
    }
    const auto larger = Limits(options, limits.max_tokens * 2, setup->config);
    if (!larger.ok() || larger->max_tokens <= limits.max_tokens) break;
    limits = *larger;
  }
  if (tokens == setup->limits.max_tokens) return;
  setup->limits = *Limits(options, tokens, setup->config);
  setup->placer = MakePlacer(options, *setup, setup->limits, options.log);
}

uint64_t Share(uint64_t bytes, int64_t part, int64_t whole) {
  if (whole == 0) return bytes;
  return static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(part) /
                               static_cast<double>(whole));
}

}  // namespace

absl::StatusOr<uint32_t> ParseKvType(const std::string& name) {
  if (name == "f16") return uint32_t{TRINE_DTYPE_F16};
  if (name == "f32") return uint32_t{TRINE_DTYPE_F32};
  if (name == "bf16") return uint32_t{TRINE_DTYPE_BF16};
  if (name == "q8_0") return uint32_t{TRINE_DTYPE_Q8_KV};
  return Invalid("'", name, "' is no type of a KV cache: f16, f32, bf16 or q8_0");
}

// Makes sure that every complaint about a file names it.
absl::Status AboutFile(const std::string& path, const absl::Status& status) {
  const std::string message(status.message());
  if (message.find(path) != std::string::npos) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", message));
}

absl::StatusOr<BlockKeeperOptions> KeepingOf(const EngineOptions& options) {
  BlockKeeperOptions keeping;
  keeping.folder = options.kv_store;
  keeping.disk_bytes = options.kv_store_bytes;
  keeping.host_bytes = options.kv_host_bytes;
  keeping.lossy = options.kv_lossy;
  keeping.prefetch_bytes = options.kv_prefetch_bytes;
  const auto form = ParseKvForm(options.kv_store_form);
  if (!form) {
    return Invalid("blocks can't be kept as \"", options.kv_store_form,
                   "\": raw, q8_0, q4_0 and mxfp4 are forms");
  }
  keeping.form = *form;
  if (!keeping.any() && (keeping.form != KvForm::kRaw || keeping.lossy)) {
    return absl::InvalidArgumentError(
        "it is said how KV blocks are kept, and not where: in a folder (kv_store, --kv-store), in "
        "memory (kv_host_bytes, --kv-host) or in both");
  }
  return keeping;
}

absl::Status CheckEngineOptions(const EngineOptions& options) {
  absl::Status s = CheckSizes(options);
  if (s.ok()) s = ParseKvType(options.kv_type_k).status();
  if (s.ok()) s = ParseKvType(options.kv_type_v).status();
  if (s.ok()) s = ReadFaults(options).status();
  if (s.ok()) s = TeamOf(options).status();
  if (s.ok()) s = KeepingOf(options).status();
  return s;
}

absl::Status CheckExpertStats(const EngineOptions& options, const gguf::File& file) {
  if (options.expert_stats.empty()) return absl::OkStatus();
  const auto config = ReadModelConfig(file);
  if (!config.ok()) return AboutFile(options.model_path, config.status());
  ExpertHits unused(config->n_layers, config->experts.count);
  return ExpertStats::Open(options.expert_stats, file, *config, &unused,
                           options.expert_stats_read_only)
      .status();
}

absl::StatusOr<ModelSetup> PrepareModel(const EngineOptions& options) {
  if (absl::Status s = CheckEngineOptions(options); !s.ok()) return s;
  auto faults = ReadFaults(options);
  if (!faults.ok()) return faults.status();
  const auto request = TeamOf(options);
  if (!request.ok()) return request.status();
  const auto about_file = [&](const absl::Status& s) { return AboutFile(options.model_path, s); };
  ModelSetup setup;
  auto file = gguf::File::Open(options.model_path, {.use_mmap = options.use_mmap});
  if (!file.ok()) return about_file(file.status());
  setup.file = *std::move(file);
  auto config = ReadModelConfig(*setup.file);
  if (!config.ok()) return about_file(config.status());
  setup.config = *std::move(config);
  const int64_t usual = std::min(kUsualBatchTokens, options.most_batch_tokens);
  const auto limits =
      Limits(options, options.batch_tokens != 0 ? options.batch_tokens : usual, setup.config);
  if (!limits.ok()) return limits.status();
  setup.limits = *limits;
  if (absl::Status s = MakeHits(options, &setup); !s.ok()) return s;
  const auto tokens = ReadTokenizerData(setup.file->metadata());
  if (!tokens.ok()) return about_file(tokens.status());
  // Probing plugins takes long, because drivers do, but runs in other processes. So the tokenizer
  // is made at the same time or, if no thread can be started, afterwards.
  MachineOptions machine;
  machine.registry = options.plugins;
  machine.registry.hardware_alone = !AsksForDevices(options);
  std::future<Inventory> inventory = std::async([&machine] { return DescribeMachine(machine); });
  auto tokenizer = MakeTokenizer(*tokens, setup.config);
  if (!tokenizer.ok()) return about_file(tokenizer.status());
  setup.tokenizer = *std::move(tokenizer);
  const LogSink log = options.log ? options.log : [](uint32_t, const std::string&) {};
  Inventory found = inventory.get();
  auto team = MakeTeam(*request, static_cast<uint32_t>(options.threads), found.machine.cpu, log);
  if (!team.ok()) return team.status();
  setup.devices.reset(new DeviceSet(std::move(found), *std::move(team), log, *std::move(faults)));
  setup.devices->set_limit(options.stage_limit);
  const Registry& registry = setup.devices->inventory().registry;
  if (!registry.unused_options.empty()) {
    return absl::InvalidArgumentError(registry.unused_options);
  }
  for (const std::string& note : registry.notes) log(TRINE_LOG_WARNING, note);
  for (const PluginFinding& plugin : registry.plugins) {
    if (!plugin.accepted) log(TRINE_LOG_DEBUG, absl::StrCat(plugin.path, ": ", plugin.reason));
  }
  EngineOptions placed = options;
  ChooseSlots(setup, &placed);
  setup.placer = MakePlacer(placed, setup, setup.limits, options.log);
  if (options.batch_tokens == 0 && setup.placer->MayFetch()) ChoosePassSize(placed, &setup);
  return setup;
}

PlacedModel Describe(const Model& model) {
  PlacedModel placed;
  if (model.places().empty()) return placed;
  std::map<std::string, int64_t> layers;  // the number of layers by device
  int64_t all = 0;
  for (const SegmentPlace& place : model.places()) {
    layers[place.device_name] += place.span.end - place.span.begin;
    all += place.span.end - place.span.begin;
  }
  std::map<std::string, uint64_t> weights;
  for (const DeviceWeights& w : model.weights()) {
    weights[w.device_name] =
        w.plain.file + w.plain.arena + w.plain.copied + w.plain.converted + w.packed_bytes;
  }
  for (const SegmentPlace& place : model.places()) {
    const int64_t mine = place.span.end - place.span.begin;
    PlacedSegment segment;
    segment.device = place.device_name;
    segment.chip = place.device->info().name;
    segment.span = place.span;
    segment.weight_bytes = Share(weights[place.device_name], mine, layers[place.device_name]);
    segment.kv_bytes = Share(model.kv_bytes(), mine, all);
    segment.scratch_bytes = Share(model.scratch_bytes(), mine, all);
    placed.segments.push_back(std::move(segment));
  }
  return placed;
}

}  // namespace trine
