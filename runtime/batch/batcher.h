// Evaluates the pending tokens of sequences. A pass takes tokens of several sequences; a model with
// several stages has several passes in flight. Owners that call at the same time share passes: one
// of them is the leader, whose thread forms the passes for all. Every pass takes the sequence of
// the oldest request; the rest of the pass goes to sequences with the fewest pending tokens. So
// other sequences wait for one pass of a long prompt, not for the whole prompt. Thread-safe.
//
// A facade of three parts, which it owns: the scheduler of requests (pass_scheduler.h), the former
// of passes (pass_former.h) and the recovery (recovery.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/batch/batcher_options.h"
#include "runtime/batch/sequence.h"
#include "runtime/batch/stage_log.h"
#include "runtime/model/run/model.h"

namespace trine {

class Batcher {
 public:
  // Makes a batcher, with a pipeline for the model.
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(std::shared_ptr<Model> model,
                                                         BatcherOptions options);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Evaluates all pending tokens of the sequences. Returns the first error; tokens that were
  // evaluated before the error stay evaluated. Returns CANCELLED if one of the sequences was
  // cancelled. Any thread may call it; a sequence may be in one call at a time.
  absl::Status Evaluate(std::span<Sequence* const> sequences);
  // Returns when at least one sequence has no pending tokens. Tokens of the other sequences may
  // then still be in flight: the caller must not touch these sequences until a later call has
  // delivered their passes, or Drain has returned.
  absl::Status EvaluateSome(std::span<Sequence* const> sequences);
  // Waits until no pass holds tokens of these sequences.
  void Drain(std::span<Sequence* const> sequences);

  // Replaces the model between two passes. Calls `prepare` first; if that fails, changes nothing
  // and returns its status. Then destroys the model, calls `load` for the next one, and lets
  // sequences replay their tokens. If `load` fails, the batcher has ended, as after a failure of
  // BatcherOptions::recover. If Replace succeeds, a batcher that had ended works again. Both
  // functions are called on some thread that is in a call of the batcher.
  using Prepare = std::function<absl::Status()>;
  using LoadNext = std::function<absl::StatusOr<std::shared_ptr<Model>>()>;
  absl::Status Replace(const Prepare& prepare, const LoadNext& load);

  // Returns why the batcher has no model any more, or OK if it has one.
  absl::Status ended() const;
  // Returns the counters of the current placement's segments; empty while a model is being loaded.
  std::vector<SegmentCounters> counters() const;
  // Returns the host's times since the batcher was made.
  HostTimes host_times() const;

 private:
  struct Parts;
  explicit Batcher(BatcherOptions options);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace trine
