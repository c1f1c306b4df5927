// Forms passes: chooses the sequences and their order, the number of tokens of each, the moves of
// their blocks, and the pass slot. Prepares passes ahead while devices work, and delivers the rows
// of finished passes to the sequences. The scheduler says when a pass is due and how large it may
// be.
//
// Owns the passes, which the pipeline shares while they are in flight. Only the leader may call it,
// under the batcher's lock, unless a function says otherwise. Allocates nothing once there have
// been passes of the same size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/batch/batch_request.h"
#include "runtime/batch/batcher_shared.h"
#include "runtime/batch/pass_job.h"
#include "runtime/batch/passes_ahead.h"
#include "runtime/batch/sequence_evaluation.h"
#include "runtime/model/run/model.h"

namespace trine {

// The sequences that wait for a pass.
struct PassDemand {
  int64_t sequences = 0;
  bool prompts = false;        // some sequences have several pending tokens
  bool decodes = false;        // some sequences have one pending token
  bool awaits_blocks = false;  // other sequences wait until their blocks are fetched
};

// The most that a pass may hold.
struct PassSize {
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t passes = 1;  // the most passes in flight; a prompt is divided among them
};

class PassFormer {
 public:
  using Passes = std::vector<std::shared_ptr<PassJob>>;
  using Failures = std::vector<std::pair<Sequence::Evaluation, absl::Status>>;

  explicit PassFormer(BatcherShared* shared) : shared_(shared) {}

  // Prepares for passes of another model, or of a new pipeline of the same model. REQUIRES: no pass
  // is in flight.
  void Use(const StagedModel& on);

  // Lists the sequences that wait for a pass. Fails requests that were cancelled.
  PassDemand FindCandidates(std::span<BatchRequest* const> queue, uint64_t epoch);
  // Forms a pass of the sequences that FindCandidates found last. Fails requests for whose tokens
  // there is no room. Returns null if no sequence is left.
  std::shared_ptr<PassJob> Form(const StagedModel& on, const PassSize& size);
  // Prepares the passes that are expected to follow the passes in flight. Releases the lock while
  // it works.
  void MakeAhead(std::unique_lock<std::mutex>& lock, const Model& model);

  // Returns the passes that are in flight or have undelivered rows, in the order in which they
  // began. Any thread that holds the lock may call it.
  const Passes& passes() const { return passes_; }
  int64_t in_flight() const;
  bool AnyInFlight(std::span<const Sequence::Evaluation> sequences) const;
  bool any_fresh() const;  // whether a pass has finished that Collect has not seen

  // Drops the shares of failed passes. Collects, for Deliver, the shares of finished passes whose
  // owners are in a call. Returns whether there are any.
  bool Collect(const StageLog* log);
  // Delivers the rows of the collected shares. Releases the lock while it works. Returns the
  // sequences that failed and why; the result is valid until the next call.
  const Failures& Deliver(std::unique_lock<std::mutex>& lock, uint64_t epoch);

  // Drop the undelivered rows of these sequences, or of all sequences. REQUIRES: none of them is in
  // flight.
  void Forget(std::span<const Sequence::Evaluation> sequences);
  void ForgetAll();

 private:
  struct Candidate {
    BatchRequest* request;
    Sequence::Evaluation sequence;
    size_t arrival;  // the number of candidates before it
  };
  using Delivery = std::pair<std::shared_ptr<PassJob>, PassShare>;

  bool IsReady(Sequence::Evaluation sequence, uint64_t epoch, bool* awaits_blocks);
  void SortCandidates();
  int64_t Piece(const StagedModel& on, const PassSize& size, int64_t pending) const;
  void TakeShares(const StagedModel& on, const PassSize& size, PassJob* pass);
  size_t FreeSlot() const;
  std::shared_ptr<PassJob> IdlePass(const StagedModel& on);
  bool Foresee(const PassJob& pass);

  BatcherShared* const shared_;
  int64_t fetch_tokens_ = 0;  // with this many tokens or more, a pass fetches weights to a device
  uint64_t formed_ = 0;       // the number of passes so far
  Passes passes_;
  PassesAhead ahead_;

  // Memory that passes reuse.
  Passes idle_;                        // passes of this model that can be reused
  std::vector<Candidate> candidates_;  // in the order of service
  std::vector<Delivery> deliveries_;
  Failures failures_;
  Batch batch_, next_batch_;
};

}  // namespace trine
