// For the batcher alone: a pass under way.
#ifndef TRINE_RUNTIME_FLIGHT_H_
#define TRINE_RUNTIME_FLIGHT_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/batcher.h"

namespace trine {

inline uint64_t Nanoseconds(std::chrono::steady_clock::duration time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

// Holds all that its stages use, so that one which hangs can be left behind.
class Batcher::Flight : public PipelineJob {
 public:
  Flight(Batcher* batcher, const Model& model, std::shared_ptr<StageLog> log, bool keep_rows)
      : batcher_(batcher),
        log_(std::move(log)),
        keep_rows_(keep_rows),
        width_(static_cast<size_t>(model.output_width())),
        hidden_width_(static_cast<size_t>(model.config().n_embd)) {
    model.ReserveForDecode(keep_rows, &pass_);
    shares_.reserve(static_cast<size_t>(model.limits().max_sequences));
  }

  // Also of one that has landed and that nobody else has any more.
  void Begin(std::shared_ptr<Model> model) {
    model_ = std::move(model);
    note_ = {};
    shares_.clear();
    stage_ = 0;
    slowest_ = {};
    landed_ = looked_at_ = foreseen_ = false;
    status_ = absl::OkStatus();
  }
  // True: but for its tokens it was made ahead.
  bool Prepare(const Batch& batch, size_t place, uint64_t number, PassesAhead* ahead) {
    const bool foreseen = ahead->Take(batch, place, &pass_);
    if (!foreseen) model_->Prepare(batch, place, &pass_);
    note_.number = number;
    note_.tokens = pass_.params[kParamTokens];
    note_.sequences = pass_.params[kParamSequences];
    return foreseen;
  }
  void Add(const Share& share, int64_t replayed) {
    shares_.push_back(share);
    note_.replayed += replayed;
  }

  absl::Status RunStage(size_t stage) override {
    StageRun run;
    stage_.store(stage, std::memory_order_relaxed);
    const absl::Status status = model_->Run(stage, &pass_, keep_rows_, &run);
    log_->Ran(stage, note_, run);
    slowest_ = std::max(slowest_, run.end - run.begin);
    return status;
  }

  void Done(const absl::Status& status, size_t) override {
    std::lock_guard lock(batcher_->mutex_);
    landed_ = true;
    landed_at_ = std::chrono::steady_clock::now();
    status_ = status;
    if (status.ok() && note_.tokens == note_.sequences) batcher_->groups_.StageTook(slowest_);
    // That something was behind a failure says less than the failure, and may be heard of first.
    const bool first = batcher_->failure_.ok() || absl::IsAborted(batcher_->failure_);
    if (first && !status.ok()) batcher_->failure_ = status;
    batcher_->Announce();
  }

  // The batcher's, under its mutex.
  std::vector<Share>& shares() { return shares_; }
  const std::vector<Share>& shares() const { return shares_; }
  bool landed() const { return landed_; }
  size_t place() const { return pass_.place; }
  uint64_t number() const { return note_.number; }
  size_t stage() const { return stage_.load(std::memory_order_relaxed); }  // that it came to last
  bool fresh() const { return landed_ && !looked_at_; }  // landed, and the leader does not know it
  void Look() {
    if (std::exchange(looked_at_, true) || !status_.ok()) return;  // a stage may still be in it
    model_.reset();
    pass_.moves.Clear();  // which may hold much
  }
  // Of the placement that this log is of.
  bool is_of(const StageLog* log) const { return log_.get() == log; }
  // What follows it was thought of.
  bool foreseen() const { return foreseen_; }
  void set_foreseen() { foreseen_ = true; }
  // The leader's, once it has landed.
  std::chrono::steady_clock::time_point landed_at() const { return landed_at_; }
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  std::span<const float> row(size_t index, bool hidden) const {
    return hidden ? std::span(pass_.hidden).subspan(index * hidden_width_, hidden_width_)
                  : pass_.rows.subspan(index * width_, width_);
  }

 private:
  Batcher* const batcher_;
  std::shared_ptr<Model> model_;
  const std::shared_ptr<StageLog> log_;
  const bool keep_rows_;
  const size_t width_, hidden_width_;
  Pass pass_;
  StageLog::PassNote note_;
  std::vector<Share> shares_;
  std::atomic<size_t> stage_ = 0;
  std::chrono::steady_clock::duration slowest_{};  // of its stages, one after the other
  bool landed_ = false;
  std::chrono::steady_clock::time_point landed_at_;
  bool looked_at_ = false;
  bool foreseen_ = false;
  absl::Status status_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_FLIGHT_H_
