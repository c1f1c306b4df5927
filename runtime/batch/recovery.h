// Holds the model in use. After a fault, or for a replacement, it loads the next model. Each model
// begins an epoch, in which sequences replay their tokens. If there is no next model, the batcher
// has ended. The recovery knows no requests and no passes: the scheduler tells it which failures
// there were and when no pass is in flight, and tells the requests when the batcher has ended.
//
// Owns the model's pipeline, and shares the model with the engine. Only the leader may call it,
// under the batcher's lock, unless a function says otherwise.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/exec/pipeline.h"
#include "runtime/batch/batcher_shared.h"
#include "runtime/batch/stage_log.h"
#include "runtime/model/run/model.h"

namespace trine {

class Recovery {
 public:
  using LoadNext = std::function<absl::StatusOr<std::shared_ptr<Model>>()>;

  explicit Recovery(BatcherShared* shared) : shared_(shared) {}

  // Makes a pipeline for this model. A model other than the last one begins an epoch.
  absl::Status Use(std::shared_ptr<Model> model);
  const StagedModel& staged() const { return staged_; }

  // Notes why a pass of this model failed.
  void NoteFailure(const absl::Status& status);
  bool failed() const { return !failure_.ok(); }
  // Returns whether a pass's failure becomes the status of its requests. Otherwise a later pass
  // evaluates their tokens again, with the model that is then in use.
  bool IsForRequests(const absl::Status& status) const;
  // Abandons the pipeline, and notes a failure, if a stage takes too long. Returns whether it did.
  // Only the leader may call it. Releases the lock while it works.
  bool AbandonIfHung(std::unique_lock<std::mutex>& lock);

  // Continues after the failure: with the next model if a device failed, otherwise with a new
  // pipeline of the same model. Fails if there is no next model. Releases the lock while it works.
  // REQUIRES: no pass is in flight.
  absl::Status Recover(std::unique_lock<std::mutex>& lock);
  // Destroys the model and its threads, and then loads the next model, which may need their memory.
  // Fails if `load` fails. Releases the lock while it works. REQUIRES: no pass is in flight.
  absl::Status LoadAnew(std::unique_lock<std::mutex>& lock, const LoadNext& load);

  // Sets why there is no next model; the next Use resets it to OK.
  void End(const absl::Status& status) { ended_ = status; }
  const absl::Status& ended() const { return ended_; }

  // Returns the counters of the current placement's segments. Any thread that holds the lock may
  // call it.
  std::vector<SegmentCounters> counters() const;

 private:
  bool CanRecover(const absl::Status& status) const;
  std::optional<std::pair<Pipeline::Running, std::string>> HungStage() const;

  BatcherShared* const shared_;
  StagedModel staged_;
  absl::Status failure_;  // the failure of a pass of this model
  absl::Status ended_;
};

}  // namespace trine
