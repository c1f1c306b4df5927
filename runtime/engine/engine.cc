#include "runtime/engine/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/handles.h"
#include "runtime/base/watched.h"
#include "runtime/model/weights/pack_cache.h"

namespace trine {
namespace {

// Returns whether a device has slots for experts.
bool HasSlots(const Model& model) {
  for (size_t stage = 0; stage < model.stage_count(); ++stage) {
    if (model.experts(stage) != nullptr) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Load(const EngineOptions& options) {
  const LogSink log = options.log ? options.log : [](uint32_t, const std::string&) {};
  const auto begin = Trace::Clock::now();
  std::unique_ptr<Engine> engine(new Engine());
  engine->log_ = log;
  if (!options.trace.empty() || options.trace_events > 0) {
    auto trace = TraceFile::Create(
        options.trace, options.trace_events > 0 ? options.trace_events : Trace::kDefaultCapacity);
    if (!trace.ok()) return trace.status();
    engine->trace_ = *std::move(trace);
  }
  auto setup = PrepareModel(options);
  if (!setup.ok()) return setup.status();
  engine->file_ = setup->file;
  engine->tokenizer_ = setup->tokenizer;
  engine->config_ = setup->config;
  engine->limits_ = setup->limits;
  engine->hits_ = setup->hits;
  engine->hits_before_ = engine->hits_->Snapshot();
  engine->expert_stats_ = std::move(setup->expert_stats);
  engine->devices_ = std::move(setup->devices);
  engine->placer_ = std::move(setup->placer);
  const auto lane_threads = LaneThreadsFromEnvironment();
  if (!lane_threads.ok()) return lane_threads.status();
  auto lane = Lane::Create(*lane_threads);
  if (!lane.ok()) return lane.status();
  engine->lane_ = *std::move(lane);

  if (options.explain) {
    // A placement without an explanation may still run, for example without a device that has
    // failed.
    auto plan = engine->placer_->Explain();
    if (plan.ok()) engine->plan_ = *std::move(plan);
  }
  auto places = engine->placer_->Choose();
  if (!places.ok()) return places.status();
  LoadOptions load;
  load.pack = options.pack;
  if (options.pack && options.pack_cache) {
    load.pack_cache =
        PackCachePath(*engine->file_, options.pack_cache_folder, engine->limits_.exact());
  }
  load.progress = options.progress;
  load.taps = options.taps;
  load.observer = options.observer;
  const ModelConfig& config = engine->config_;
  const SegmentLimits& limits = engine->limits_;
  // Outlives the model, so that one that is loaded again after a loss begins with what is known.
  load.hits = engine->hits_;
  engine->model_keeper_ =
      std::make_unique<ModelKeeper>(engine->file_, config, limits, engine->devices_.get(),
                                    std::move(load), options.readmission, log);
  engine->model_keeper_->SetPlacer(engine->placer_.get());
  auto model = engine->model_keeper_->Load(*std::move(places));
  engine->TellOfLost();
  if (!model.ok()) {
    // Neither a lack of memory nor a lost device is the file's fault.
    const absl::Status& why = model.status();
    return absl::IsResourceExhausted(why) || absl::IsUnavailable(why)
               ? why
               : AboutFile(options.model_path, why);
  }
  engine->Show(*std::move(model));
  engine->lock_memory_ = options.lock_memory;
  engine->blocks_ = std::make_shared<KvBlockPool>(limits.kv_blocks);
  engine->text_budget_ = std::make_unique<BlockBudget>(limits.kv_blocks);
  engine->prefix_cache_ = std::make_unique<PrefixCache>(engine->blocks_);
  if (absl::Status s = engine->MakeBlockKeeper(options); !s.ok()) return s;
  BatcherOptions batching;
  batching.block_keeper = engine->block_keeper_.get();
  batching.prefix_cache = engine->prefix_cache_.get();
  batching.recover = [e = engine.get()](const absl::Status& failure) {
    return e->Recover(failure);
  };
  batching.stage_limit = options.stage_limit;
  batching.mixed_tokens = options.mixed_tokens;
  if (engine->trace_ != nullptr) {
    batching.trace = engine->trace_->trace();
    batching.trace->Add(engine->trace_->engine_track(), "load", begin, Trace::Clock::now());
  }
  batching.watch_cpu = engine->devices_->faults() != nullptr;  // a fault may let it hang
  auto batcher = Batcher::Create(engine->model_, std::move(batching));
  if (!batcher.ok()) return batcher.status();
  engine->batcher_ = *std::move(batcher);

  for (const PluginFinding& plugin : engine->devices_->inventory().registry.plugins) {
    const auto& named = options.plugins.search.explicit_paths;
    if (plugin.accepted || std::find(named.begin(), named.end(), plugin.path) == named.end())
      continue;
    log(TRINE_LOG_WARNING, absl::StrCat(plugin.path, " is not used: ", plugin.reason));
  }
  // OpenMP may have bound the calling thread, which then sees one processor. A program that lends
  // threads knows how many processors they have.
  const bool is_own = engine->devices_->host().team()->name() == std::string_view("own");
  const size_t processors = is_own ? engine->devices_->inventory().machine.cpu.usable_cpus.size()
                                   : engine->devices_->host().team()->processors();
  if (processors != 0 && engine->threads() > processors) {
    log(TRINE_LOG_WARNING,
        absl::StrCat(engine->threads(), " threads share ", processors,
                     processors == 1 ? " processor" : " processors", ": fewer are faster"));
  }
  if (options.lock_memory) {
    const absl::Status locked = engine->model_->LockWeights();
    if (!locked.ok()) log(TRINE_LOG_WARNING, std::string(locked.message()));
  }
  if (limits.max_context > config.n_ctx_train) {
    log(TRINE_LOG_WARNING, absl::StrCat("a context of ", limits.max_context, " is more than the ",
                                        config.n_ctx_train, " the model was trained with"));
  }
  if (options.placement.hot_experts.value_or(0) > 0 && !HasSlots(*engine->model_)) {
    log(TRINE_LOG_WARNING,
        "--hot-experts has no effect: it takes a GPU with layers whose experts are on the CPU");
  }
  return engine;
}

absl::Status Engine::MakeBlockKeeper(const EngineOptions& options) {
  auto asked = KeepingOf(options);
  if (!asked.ok()) return asked.status();
  BlockKeeperOptions& keeping = *asked;
  if (!keeping.any() || limits_.embeddings) return absl::OkStatus();
  keeping.log = [log = log_](const std::string& text) { log(TRINE_LOG_WARNING, text); };
  if (trace_ != nullptr) {
    keeping.prefetched = [trace = trace_->trace(), track = trace_->trace()->AddTrack("kv")](
                             Trace::Clock::time_point begin, int64_t blocks) {
      trace->Add(track, "prefetch", begin, Trace::Clock::now(), {{"blocks", blocks}});
    };
  }
  KvSpaceFields fields;
  fields.numerics_version = TRINE_NUMERICS_VERSION;
  fields.layout.layers = static_cast<uint32_t>(config_.n_layers);
  fields.layout.kv_heads = static_cast<uint32_t>(config_.n_kv_heads);
  fields.layout.head_dim_k = static_cast<uint32_t>(config_.head_dim_k);
  fields.layout.head_dim_v = static_cast<uint32_t>(config_.head_dim_v);
  fields.layout.type_k = static_cast<quant::Type>(limits_.kv_type_k);
  fields.layout.type_v = static_cast<quant::Type>(limits_.kv_type_v);
  fields.layout.positions = static_cast<uint32_t>(kBlockPositions);
  // Blocks that fast devices may have computed are kept apart from exact ones.
  fields.other = absl::StrCat("rope ", absl::Hex(model_->RopeHash(), absl::kZeroPad16),
                              limits_.exact() ? "" : " fast");
  auto keeper = BlockKeeper::Create(*file_, std::move(fields), model_->kv_block_bytes(),
                                    static_cast<int>(threads()), keeping);
  if (!keeper.ok()) return keeper.status();
  block_keeper_ = *std::move(keeper);
  return absl::OkStatus();
}

std::optional<BlockKeeperCounters> Engine::keeper_counters() const {
  if (block_keeper_ == nullptr) return std::nullopt;
  return block_keeper_->counters();
}

std::unique_ptr<BlockPrefetcher::Prefetch> Engine::Prefetch(const std::string& space,
                                                            std::span<const int32_t> prompt) {
  if (!prefetches() || prompt.empty()) return nullptr;
  // The last token is always evaluated, since it gives the logits.
  const size_t most = (prompt.size() - 1) / kBlockPositions * kBlockPositions;
  const std::span<const int32_t> tokens = prompt.first(most);
  const int64_t held = prefix_cache_->Holds(space, tokens);
  if (held == static_cast<int64_t>(most)) return nullptr;
  return block_keeper_->Prefetch(space, {tokens.begin(), tokens.end()}, held / kBlockPositions);
}

const ConstraintVocabulary& Engine::constraint_vocabulary() const {
  std::call_once(constraint_once_,
                 [this] { constraint_vocabulary_ = ConstraintVocabulary::Of(tokenizer_); });
  return constraint_vocabulary_;
}

// Publishes the lost devices: counts and traces new ones, and updates what lost_devices() returns.
void Engine::TellOfLost() {
  for (const LostDevice& lost : model_keeper_->lost()) {
    if (lost.since <= told_of_lost_) continue;
    ++losses_;
    if (trace_ == nullptr) continue;
    trace_->trace()->Mark(trace_->engine_track(), "lost", lost.since,
                          absl::StrCat(lost.name, ": ", lost.reason));
  }
  told_of_lost_ = std::chrono::steady_clock::now();
  std::lock_guard lock(model_mutex_);
  lost_ = model_keeper_->lost();
  next_try_ = model_keeper_->readmission().Next();
}

absl::StatusOr<std::shared_ptr<Model>> Engine::Install(const char* event, const std::string& hung,
                                                       const Batcher::LoadNext& load) {
  const auto begin = Trace::Clock::now();
  std::shared_ptr<Model> old = Model::Nowhere(config_, limits_);
  {
    std::lock_guard lock(model_mutex_);
    std::swap(model_, old);
    placed_ = {};
  }
  Retire(std::move(old), hung);
  auto model = load();
  if (model.ok() && lock_memory_) (*model)->LockWeights().IgnoreError();  // Load has reported it
  TellOfLost();
  if (trace_ != nullptr) {
    trace_->trace()->Add(trace_->engine_track(), event, begin, Trace::Clock::now());
  }
  if (!model.ok()) return model.status();
  Show(*model);
  return model;
}

void Engine::Show(std::shared_ptr<Model> model) {
  ++placements_;
  PlacedModel placed = Describe(*model);
  std::lock_guard lock(model_mutex_);
  model_ = std::move(model);
  placed_ = std::move(placed);
}

absl::StatusOr<std::shared_ptr<Model>> Engine::Recover(const absl::Status& failure) {
  const std::string device = FaultyDevice(failure);
  return Install("recovery", absl::IsDeadlineExceeded(failure) ? device : "",
                 [&] { return model_keeper_->Replace(device, failure); });
}

void Engine::Retire(std::shared_ptr<Model> model, const std::string& hung) {
  const std::weak_ptr<void> life = model->life();
  const std::set<std::string> used = model->Devices();
  const std::vector<std::string> names(used.begin(), used.end());
  const auto watched = [&](const std::string& name) { return devices_->IsWatched(name); };
  if (std::any_of(names.begin(), names.end(), watched)) {
    Watched<absl::Status> work([model = std::move(model)]() mutable {
      model.reset();
      return absl::OkStatus();
    });
    work.WaitFor(devices_->closing_limit());
  } else {
    model.reset();
  }
  if (life.expired()) return;
  // With a hung device, other devices may be in calls that only wait for it.
  const std::vector<std::string> in = !hung.empty()
                                          ? std::vector<std::string>{hung}
                                          : devices_->InACall(names, devices_->closing_limit() / 2);
  devices_->Leave(names, in, life);
}

// `choose` returns lost devices. It is called on the batcher leader's thread.
absl::Status Engine::Readmit(const std::function<std::vector<std::string>()>& choose,
                             std::chrono::milliseconds most) {
  std::vector<std::string> open;
  absl::Status refused;
  bool nothing_to_do = false;
  const auto refuse = [&](const std::string& device, const std::string& why) {
    log_(TRINE_LOG_INFO, absl::StrCat(device, " is not used again: ", why));
    refused = absl::UnavailableError(
        absl::StrCat(refused.message(), refused.ok() ? "" : "; ", device, ": ", why));
  };
  const auto prepare = [&]() -> absl::Status {
    const std::vector<std::string> devices = choose();
    nothing_to_do = devices.empty();
    for (const std::string& device : devices) {
      absl::Status status;
      if (devices_->HangsIn(device)) {
        model_keeper_->PutOff(device);
        status = absl::UnavailableError("a pass that was given up is still in it");
      } else {
        status = model_keeper_->Probe(device, most);
      }
      if (status.ok()) open.push_back(device);
      if (!status.ok()) refuse(device, std::string(status.message()));
    }
    TellOfLost();
    if (!open.empty()) return absl::OkStatus();
    return nothing_to_do ? absl::FailedPreconditionError("no device is lost") : refused;
  };
  const auto load = [&] {
    auto model = Install("readmission", "", [&] { return model_keeper_->Readmit(open); });
    for (const std::string& device : open) {
      const LostDevice* again = model_keeper_->FindLost(device);
      if (again != nullptr) refuse(device, again->reason);
    }
    return model;
  };
  const absl::Status status = batcher_->Replace(prepare, load);
  if (nothing_to_do) return absl::OkStatus();
  return status.ok() ? refused : status;
}

absl::Status Engine::Readmit(const std::string& device) {
  std::string tier;
  if (!device.empty()) {
    const auto resolved = devices_->Resolve(device);
    if (!resolved.ok()) return resolved.status();
    tier = *resolved;
  }
  bool is_lost = true;
  const absl::Status status = Readmit(
      [&] {
        std::vector<std::string> devices;
        for (const LostDevice& lost : model_keeper_->lost()) {
          if (tier.empty() || lost.name == tier) devices.push_back(lost.name);
        }
        is_lost = tier.empty() || !devices.empty();
        return devices;
      },
      std::chrono::milliseconds::max());
  if (!is_lost) return absl::FailedPreconditionError(absl::StrCat(device, " is not lost"));
  return status;
}

void Engine::BeginRequest() {
  {
    std::lock_guard lock(model_mutex_);
    if (!next_try_ || std::chrono::steady_clock::now() < *next_try_) return;
  }
  const std::unique_lock<std::mutex> mine(readmit_mutex_, std::try_to_lock);
  if (!mine.owns_lock()) return;
  // All requests wait during this time.
  constexpr std::chrono::milliseconds kMostForTrying(5000);
  Readmit([&] { return model_keeper_->readmission().Due(std::chrono::steady_clock::now()); },
          kMostForTrying)
      .IgnoreError();  // tried again later; lost_devices() has the reason
}

absl::Status Engine::WriteTrace() {
  if (trace_ == nullptr) return absl::OkStatus();
  absl::Status status = trace_->Write();
  if (!status.ok()) told_of_trace_ = true;
  return status;
}

Engine::~Engine() {
  block_keeper_.reset();
  batcher_.reset();
  const bool told = told_of_trace_;
  if (const absl::Status s = WriteTrace(); !s.ok() && !told) {
    log_(TRINE_LOG_WARNING, std::string(s.message()));
  }
  // An engine that was not loaded has counted nothing.
  if (expert_stats_ != nullptr) {
    if (const absl::Status s = expert_stats_->Write(counted_experts()); !s.ok()) {
      log_(TRINE_LOG_WARNING, absl::StrCat(s.message(), ": the counts of this run are not kept"));
    }
  }
  if (model_ != nullptr) Retire(std::move(model_), "");
}

std::vector<LostDevice> Engine::lost_devices() const {
  std::lock_guard lock(model_mutex_);
  return lost_;
}

PlacedModel Engine::placed() const {
  std::lock_guard lock(model_mutex_);
  return placed_;
}

std::shared_ptr<const Model> Engine::model() const {
  std::lock_guard lock(model_mutex_);
  return model_;
}

std::unique_ptr<Sequence> Engine::NewSequence() {
  return std::make_unique<Sequence>(blocks_, config_.n_vocab, context());
}

}  // namespace trine
