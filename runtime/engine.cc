#include "runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/device_fault.h"
#include "runtime/model/pack_cache.h"
#include "runtime/model_setup.h"

namespace trine {
absl::StatusOr<std::unique_ptr<Engine>> Engine::Load(const EngineOptions& options) {
  const LogSink log = options.log ? options.log : [](uint32_t, const std::string&) {};
  auto setup = PrepareModel(options);
  if (!setup.ok()) return setup.status();
  std::unique_ptr<Engine> engine(new Engine());
  engine->file_ = setup->file;
  engine->tokenizer_ = setup->tokenizer;
  engine->config_ = setup->config;
  engine->limits_ = setup->limits;
  engine->devices_ = std::move(setup->devices);
  engine->placer_ = std::move(setup->placer);
  const auto lane_threads = LaneThreadsFromEnvironment();
  if (!lane_threads.ok()) return lane_threads.status();
  auto lane = Lane::Create(*lane_threads);
  if (!lane.ok()) return lane.status();
  engine->lane_ = *std::move(lane);

  auto ranges = engine->placer_->Choose();
  if (!ranges.ok()) return ranges.status();
  LoadOptions load;
  load.pack = options.pack;
  if (options.pack && options.pack_cache) {
    load.pack_cache = PackCachePath(*engine->file_, options.pack_cache_folder);
  }
  load.progress = options.progress;
  const ModelConfig& config = engine->config_;
  const SegmentLimits& limits = engine->limits_;
  engine->keeper_ = std::make_unique<ModelKeeper>(engine->file_, config, limits,
                                                  engine->devices_.get(), std::move(load), log);
  engine->keeper_->SetPlacer(engine->placer_.get());
  auto model = engine->keeper_->Load(*std::move(ranges));
  if (!model.ok()) {
    // Want of memory is not the file's fault, nor is a device that is lost.
    const absl::Status& why = model.status();
    return absl::IsResourceExhausted(why) || absl::IsUnavailable(why)
               ? why
               : AboutFile(options.model_path, why);
  }
  engine->model_ = *std::move(model);
  engine->lost_ = engine->keeper_->lost();
  engine->lock_memory_ = options.lock_memory;
  engine->blocks_ = std::make_shared<KvBlockPool>(limits.kv_blocks);
  engine->text_budget_ = std::make_unique<BlockBudget>(limits.kv_blocks);
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
  if (limits.max_context > config.n_ctx_train) {
    log(TRINE_LOG_WARNING, absl::StrCat("a context of ", limits.max_context, " is more than the ",
                                        config.n_ctx_train, " the model was trained with"));
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
