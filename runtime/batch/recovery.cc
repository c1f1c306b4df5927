#include "runtime/batch/recovery.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "plugins/handles.h"

namespace trine {

absl::Status Recovery::Use(std::shared_ptr<Model> model) {
  const BatcherOptions& batching = shared_->options;
  PipelineOptions options;
  for (const SegmentPlace& place : model->places()) options.stages.push_back(place.device_name);
  options.waiting = model->pass_slots();
  options.on_caller = options.stages.size() == 1 && !batching.watch_cpu &&
                      model->StageDevices(0) == std::vector<std::string>{"cpu"};
  staged_.keep_rows = !options.on_caller;
  const uint64_t epoch = staged_.model == model ? staged_.epoch : staged_.epoch + 1;
  std::vector<std::vector<std::string>> devices;
  for (size_t i = 0; i < model->stage_count(); ++i) devices.push_back(model->StageDevices(i));
  auto log =
      std::make_shared<StageLog>(model->places(), model->routes(), devices, epoch, batching.trace);
  options.trace = log->trace();
  options.tracks = log->tracks();
  auto pipeline = Pipeline::Create(std::move(options));
  if (!pipeline.ok()) return pipeline.status();
  staged_.pipeline = *std::move(pipeline);
  staged_.log = std::move(log);
  // Under the lock, like CatchUp and OfferTo: no block of one epoch is found in another.
  if (epoch != staged_.epoch && batching.prefix_cache != nullptr) batching.prefix_cache->Clear();
  staged_.epoch = epoch;
  staged_.model = std::move(model);
  ended_ = absl::OkStatus();
  return absl::OkStatus();
}

bool Recovery::CanRecover(const absl::Status& status) const {
  return shared_->options.recover != nullptr && !FaultyDevice(status).empty();
}

bool Recovery::IsForRequests(const absl::Status& status) const {
  return !CanRecover(status) && !absl::IsAborted(status);
}

// A pass that follows a failed pass ends with ABORTED. That may be reported first, but says less.
void Recovery::NoteFailure(const absl::Status& status) {
  if (failure_.ok() || absl::IsAborted(failure_)) failure_ = status;
}

// Returns a stage that has exceeded stage_limit, and the device that it waits for.
std::optional<std::pair<Pipeline::Running, std::string>> Recovery::HungStage() const {
  const BatcherOptions& batching = shared_->options;
  for (const Pipeline::Running& running : staged_.pipeline->AllRunning()) {
    if (running.time < batching.stage_limit) continue;
    BusyDevice busy = staged_.model->Busiest(running.stage);
    const auto now = std::chrono::steady_clock::now();
    if (busy.since && now - *busy.since < batching.stage_limit) continue;
    if (busy.name != "cpu" || batching.watch_cpu) return std::pair(running, std::move(busy.name));
  }
  return std::nullopt;
}

bool Recovery::AbandonIfHung(std::unique_lock<std::mutex>& lock) {
  const auto hung = HungStage();
  if (!hung) return false;
  const double limit_s = static_cast<double>(shared_->options.stage_limit.count()) / 1000;
  const absl::Status why =
      OnDevice(hung->second, absl::DeadlineExceededError(absl::StrCat(
                                 "it has not come back from a pass within ", limit_s, " s")));
  lock.unlock();
  staged_.log->Hung(hung->first.stage, hung->first.time);
  staged_.pipeline->Abandon(why);
  lock.lock();
  failure_ = why;  // replaces an earlier failure, as a hung device is worse
  return true;
}

absl::Status Recovery::Recover(std::unique_lock<std::mutex>& lock) {
  const absl::Status failure = std::exchange(failure_, absl::OkStatus());
  if (CanRecover(failure)) {
    return LoadAnew(lock, [&] { return shared_->options.recover(failure); });
  }
  // Keeps the model, because its KV cache is still valid.
  std::unique_ptr<Pipeline> pipeline = std::move(staged_.pipeline);
  lock.unlock();
  pipeline.reset();
  lock.lock();
  return Quietly([&] { return Use(staged_.model); });
}

absl::Status Recovery::LoadAnew(std::unique_lock<std::mutex>& lock, const LoadNext& load) {
  std::shared_ptr<Model> model = std::move(staged_.model);
  std::unique_ptr<Pipeline> pipeline = std::move(staged_.pipeline);
  lock.unlock();
  absl::Status status = Quietly([&] {
    pipeline.reset();
    model.reset();
    auto next = load();
    if (next.ok()) model = *std::move(next);
    return next.status();
  });
  lock.lock();
  if (!status.ok()) return status;
  return Quietly([&] { return Use(std::move(model)); });
}

std::vector<SegmentCounters> Recovery::counters() const {
  if (staged_.pipeline == nullptr) return {};
  return staged_.log->Counters(staged_.pipeline->counters());
}

}  // namespace trine
