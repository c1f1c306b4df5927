#include "runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/device_fault.h"
#include "runtime/machine_report.h"
#include "runtime/model/pack_cache.h"
#include "runtime/split_mode.h"

namespace trine {
namespace {

constexpr int64_t kMaxBatchTokens = 1 << 16;
constexpr int64_t kMaxSequences = 1024;
constexpr uint32_t kMaxThreads = 1024;
// Rows of output in one pass: as many as fit, but at least one per sequence.
constexpr int64_t kOutputBytes = int64_t{64} << 20;

absl::Status CheckOptions(const EngineOptions& options) {
  const auto within = [](const char* what, int64_t value, int64_t min, int64_t max) {
    if (value >= min && value <= max) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", value, ": it must lie between ", min, " and ", max));
  };
  absl::Status s = within("the batch size", options.batch_tokens, 1, kMaxBatchTokens);
  if (s.ok()) s = within("the number of sequences", options.max_sequences, 1, kMaxSequences);
  if (s.ok()) s = within("the number of threads", options.threads, 0, kMaxThreads);
  if (s.ok() && options.context != EngineOptions::kDefaultContext) {
    s = within("the context size", options.context, 0, int64_t{1} << 30);
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
  return absl::InvalidArgumentError(
      absl::StrCat(variable != nullptr ? "TRINE_FAULT: " : "faults: ", spec.status().message()));
}

absl::StatusOr<SegmentLimits> Limits(const EngineOptions& options, const ModelConfig& config) {
  SegmentLimits limits;
  limits.max_context = options.context;
  if (options.context == EngineOptions::kDefaultContext) {
    limits.max_context = std::min(config.n_ctx_train, EngineOptions::kDefaultContextLimit);
  } else if (options.context == 0) {
    limits.max_context = config.n_ctx_train;
  }
  if (limits.max_context * options.max_sequences > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a context of ", limits.max_context, " for ", options.max_sequences,
                     " sequences is more positions than can be numbered"));
  }
  const auto type_k = ParseKvType(options.kv_type_k);
  if (!type_k.ok()) return type_k.status();
  const auto type_v = ParseKvType(options.kv_type_v);
  if (!type_v.ok()) return type_v.status();
  limits.kv_type_k = *type_k;
  limits.kv_type_v = *type_v;
  if ((limits.kv_type_k == TRINE_DTYPE_Q8_KV && config.head_dim_k % 32 != 0) ||
      (limits.kv_type_v == TRINE_DTYPE_Q8_KV && config.head_dim_v % 32 != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a q8_0 cache needs heads of a multiple of 32 values; this model has ",
                     config.head_dim_k, " and ", config.head_dim_v));
  }
  limits.max_sequences = options.max_sequences;
  limits.max_tokens = std::min(options.batch_tokens, limits.max_context * options.max_sequences);
  limits.max_tokens = std::max(limits.max_tokens, limits.max_sequences);
  limits.kv_blocks = limits.max_blocks_per_sequence() * limits.max_sequences;
  limits.embeddings = options.embeddings;
  if (options.embeddings) {
    limits.kv_blocks = std::max(limits.max_blocks_per_sequence(), limits.max_sequences);
  }
  const int64_t row_bytes =
      (options.embeddings ? config.n_embd : config.n_vocab) * static_cast<int64_t>(sizeof(float));
  limits.max_output_rows =
      std::clamp<int64_t>(kOutputBytes / row_bytes, limits.max_sequences, limits.max_tokens);
  return limits;
}

}  // namespace

absl::StatusOr<uint32_t> ParseKvType(const std::string& name) {
  if (name == "f16") return uint32_t{TRINE_DTYPE_F16};
  if (name == "f32") return uint32_t{TRINE_DTYPE_F32};
  if (name == "bf16") return uint32_t{TRINE_DTYPE_BF16};
  if (name == "q8_0") return uint32_t{TRINE_DTYPE_Q8_KV};
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is no type of a KV cache: f16, f32, bf16 or q8_0"));
}

absl::Status Engine::OpenFile(const EngineOptions& options) {
  auto file = gguf::File::Open(options.model_path, {.use_mmap = options.use_mmap});
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  const auto data = ReadTokenizerData(file_->metadata());
  if (!data.ok()) return data.status();
  auto tokenizer = Tokenizer::Create(*data);
  if (!tokenizer.ok()) return tokenizer.status();
  tokenizer_ = *std::move(tokenizer);
  return absl::OkStatus();
}

absl::StatusOr<ModelConfig> Engine::ReadConfig() const {
  auto config = ReadModelConfig(*file_);
  if (config.ok() && tokenizer_->vocab_size() != config->n_vocab) {
    return absl::InvalidArgumentError(absl::StrCat("the tokenizer has ", tokenizer_->vocab_size(),
                                                   " tokens, token_embd.weight has ",
                                                   config->n_vocab, " rows"));
  }
  return config;
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Load(const EngineOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  auto faults = ReadFaults(options);
  if (!faults.ok()) return faults.status();
  std::unique_ptr<Engine> engine(new Engine());
  // Every complaint about a file says which.
  const auto about_file = [&](const absl::Status& s) {
    const std::string message(s.message());
    if (message.find(options.model_path) != std::string::npos) return s;
    return absl::Status(s.code(), absl::StrCat(options.model_path, ": ", message));
  };
  const LogSink log = options.log ? options.log : [](uint32_t, const std::string&) {};
  if (absl::Status s = engine->OpenFile(options); !s.ok()) return about_file(s);
  const auto config = engine->ReadConfig();
  if (!config.ok()) return about_file(config.status());
  const auto limits = Limits(options, *config);
  if (!limits.ok()) return limits.status();

  MachineOptions machine;
  machine.registry = options.plugins;
  engine->devices_ = std::make_unique<DeviceSet>(DescribeMachine(machine), options.threads, log,
                                                 *std::move(faults));
  for (const std::string& note : engine->devices_->inventory().registry.notes) {
    log(TRINE_LOG_WARNING, note);
  }
  const auto lane_threads = LaneThreadsFromEnvironment();
  if (!lane_threads.ok()) return lane_threads.status();
  auto lane = Lane::Create(*lane_threads);
  if (!lane.ok()) return lane.status();
  engine->lane_ = *std::move(lane);

  auto places = ChoosePlaces(options, *engine->file_, *config, *engine->devices_);
  if (!places.ok()) return places.status();
  LoadOptions load;
  load.pack = options.pack;
  if (options.pack && options.pack_cache) {
    load.pack_cache = PackCachePath(*engine->file_, options.pack_cache_folder);
  }
  load.progress = options.progress;
  engine->config_ = *config;
  engine->limits_ = *limits;
  engine->keeper_ = std::make_unique<ModelKeeper>(engine->file_, *config, *limits,
                                                  engine->devices_.get(), std::move(load), log);
  auto model = engine->keeper_->Load(*std::move(places));
  if (!model.ok()) {
    // Want of memory is not the file's fault, nor is a device that is lost.
    const absl::Status& why = model.status();
    return absl::IsResourceExhausted(why) || absl::IsUnavailable(why) ? why : about_file(why);
  }
  engine->model_ = *std::move(model);
  engine->lost_ = engine->keeper_->lost();
  engine->lock_memory_ = options.lock_memory;
  engine->blocks_ = std::make_shared<KvBlockPool>(limits->kv_blocks);
  engine->text_budget_ = std::make_unique<BlockBudget>(limits->kv_blocks);
  BatcherOptions batching;
  batching.recover = [e = engine.get()](const absl::Status& failure) {
    return e->Recover(failure);
  };
  batching.stage_limit = options.stage_limit;
  batching.watch_cpu = engine->devices_->faults() != nullptr;  // one of them may be that it hangs
  auto batcher = Batcher::Create(engine->model_, std::move(batching));
  if (!batcher.ok()) return batcher.status();
  engine->batcher_ = *std::move(batcher);

  for (const PluginFinding& plugin : engine->devices_->inventory().registry.plugins) {
    const auto& named = options.plugins.search.explicit_paths;
    if (plugin.accepted || std::find(named.begin(), named.end(), plugin.path) == named.end())
      continue;
    log(TRINE_LOG_WARNING, absl::StrCat(plugin.path, " is not used: ", plugin.reason));
  }
  const size_t processors = engine->devices_->inventory().machine.cpu.usable_cpus.size();
  if (processors != 0 && engine->threads() > processors) {
    log(TRINE_LOG_WARNING, absl::StrCat(engine->threads(), " threads share ", processors,
                                        " processors: fewer are faster"));
  }
  if (options.lock_memory) {
    const absl::Status locked = engine->model_->LockWeights();
    if (!locked.ok()) log(TRINE_LOG_WARNING, std::string(locked.message()));
  }
  if (limits->max_context > config->n_ctx_train) {
    log(TRINE_LOG_WARNING, absl::StrCat("a context of ", limits->max_context, " is more than the ",
                                        config->n_ctx_train, " the model was trained with"));
  }
  return engine;
}

const ConstraintVocabulary& Engine::constraint_vocabulary() const {
  std::call_once(constraint_once_,
                 [this] { constraint_vocabulary_ = ConstraintVocabulary::Of(tokenizer_); });
  return constraint_vocabulary_;
}

absl::StatusOr<std::shared_ptr<Model>> Engine::Recover(const absl::Status& failure) {
  std::weak_ptr<void> old;
  {
    std::lock_guard lock(model_mutex_);
    old = model_->life();
    model_ = Model::Nowhere(config_, limits_);
  }
  // A stage that hangs is still in it.
  if (!old.expired()) abandoned_.push_back(old);
  auto model = keeper_->Replace(FaultyDevice(failure), failure);
  if (model.ok() && lock_memory_) (*model)->LockWeights().IgnoreError();  // it was said when loaded
  std::lock_guard lock(model_mutex_);
  lost_ = keeper_->lost();
  if (!model.ok()) return model.status();
  model_ = *model;
  return model_;
}

Engine::~Engine() {
  batcher_.reset();
  if (abandoned_.empty()) return;
  // What hangs in a device uses it, the team and the host's table. If it does not come back there
  // is nothing to be done but to leave them to it.
  if (devices_->faults() != nullptr) devices_->faults()->Release();
  const auto gone = [](const std::weak_ptr<void>& life) { return life.expired(); };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!std::all_of(abandoned_.begin(), abandoned_.end(), gone)) {
    if (std::chrono::steady_clock::now() > end) {
      devices_.release();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<LostDevice> Engine::lost_devices() const {
  std::lock_guard lock(model_mutex_);
  return lost_;
}

std::shared_ptr<const Model> Engine::model() const {
  std::lock_guard lock(model_mutex_);
  return model_;
}

std::unique_ptr<Sequence> Engine::NewSequence() {
  return std::make_unique<Sequence>(blocks_, config_.n_vocab, context());
}

}  // namespace trine
