// A pass as a job of the pipeline, from its batch to the delivery of its rows. Holds everything
// that its stages use, so that a pass that hangs can be abandoned.
//
// The pass former makes it and shares it with the pipeline. The thread of a stage calls RunStage;
// the other functions are for the leader, or for any thread under the batcher's lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "dispatch/exec/pipeline.h"
#include "runtime/batch/batcher_shared.h"
#include "runtime/batch/passes_ahead.h"
#include "runtime/batch/sequence_evaluation.h"
#include "runtime/batch/stage_log.h"
#include "runtime/model/run/model.h"

namespace trine {

class PassJob : public PipelineJob {
 public:
  PassJob(BatcherShared* shared, const StagedModel& on)
      : shared_(shared),
        log_(on.log),
        keep_rows_(on.keep_rows),
        width_(static_cast<size_t>(on.model->output_width())),
        hidden_width_(static_cast<size_t>(on.model->config().n_embd)) {
    on.model->ReserveForDecode(keep_rows_, &pass_);
    shares_.reserve(static_cast<size_t>(on.model->limits().max_sequences));
  }

  // Begins a new pass. The job may have been a pass before, which nothing else holds any more.
  void Begin(std::shared_ptr<Model> model) {
    model_ = std::move(model);
    note_ = {};
    shares_.clear();
    stage_ = 0;
    slowest_ = {};
    finished_ = looked_at_ = foreseen_ = false;
    status_ = absl::OkStatus();
  }
  void Add(PassShare share) {
    note_.replayed += share.replayed;
    shares_.push_back(std::move(share));
  }
  // Fills the pass from the batch. Returns whether it had been prepared ahead, except for its
  // tokens.
  bool Prepare(const Batch& batch, size_t slot, uint64_t number, PassesAhead* ahead) {
    const bool foreseen = ahead->Take(batch, slot, &pass_);
    if (!foreseen) model_->Prepare(batch, slot, &pass_);
    note_.number = number;
    note_.tokens = pass_.params[kParamTokens];
    note_.sequences = pass_.params[kParamSequences];
    return foreseen;
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
    if (status.ok()) model_->CountChoices(&pass_);
    std::lock_guard lock(shared_->mutex);
    finished_ = true;
    finished_at_ = std::chrono::steady_clock::now();
    status_ = status;
    shared_->Announce();
  }

  // Only under the lock.
  std::vector<PassShare>& shares() { return shares_; }
  const std::vector<PassShare>& shares() const { return shares_; }
  bool finished() const { return finished_; }
  size_t slot() const { return pass_.slot; }
  uint64_t number() const { return note_.number; }
  // Returns the stage that the pass reached last.
  size_t stage() const { return stage_.load(std::memory_order_relaxed); }
  // Returns whether the pass has finished and the leader has not noticed it yet.
  bool fresh() const { return finished_ && !looked_at_; }
  // Marks a finished pass as noticed by the leader, and releases what only its stages used.
  void Look() {
    // A stage may still use a failed pass.
    if (std::exchange(looked_at_, true) || !status_.ok()) return;
    model_.reset();
    pass_.moves.Clear();  // may hold much memory
  }
  // Returns whether the pass belongs to the placement of this log.
  bool is_of(const StageLog* log) const { return log_.get() == log; }
  // Returns whether the leader has tried to prepare the pass that follows this one.
  bool foreseen() const { return foreseen_; }
  void set_foreseen() { foreseen_ = true; }

  // Only the leader may call these, after the pass has finished.
  std::chrono::steady_clock::time_point finished_at() const { return finished_at_; }
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  // Returns whether each sequence had one token.
  bool decoded() const { return note_.tokens == note_.sequences; }
  std::chrono::steady_clock::duration slowest() const { return slowest_; }
  PassRows rows() const { return {pass_.rows, pass_.hidden, width_, hidden_width_}; }

 private:
  BatcherShared* const shared_;
  std::shared_ptr<Model> model_;
  const std::shared_ptr<StageLog> log_;
  const bool keep_rows_;
  const size_t width_, hidden_width_;
  Pass pass_;
  StageLog::PassNote note_;
  std::vector<PassShare> shares_;
  std::atomic<size_t> stage_ = 0;
  std::chrono::steady_clock::duration slowest_{};  // the time in its slowest stage
  bool finished_ = false;
  std::chrono::steady_clock::time_point finished_at_;
  bool looked_at_ = false;
  bool foreseen_ = false;
  absl::Status status_;
};

}  // namespace trine
