// Brings the pending tokens of sequences through the model, several sequences in one pass. Threads
// that ask at the same time share passes: one of them leads, the others' tokens ride along. Who has
// waited longest is in every pass; the rest of it goes to those with the fewest pending tokens, so
// that a long prompt costs the others a pass and not its whole length.
#ifndef TRINE_RUNTIME_BATCHER_H_
#define TRINE_RUNTIME_BATCHER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/model/model.h"
#include "runtime/sequence.h"

namespace trine {

class Batcher {
 public:
  explicit Batcher(Model* model) : model_(model) {}
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Returns when no sequence has pending tokens, or with the first error; sequences then keep what
  // has been evaluated. CANCELLED when one of them was. From any thread; a sequence is in one call
  // at a time.
  absl::Status Evaluate(std::span<Sequence* const> sequences);

 private:
  struct Request {
    std::vector<Sequence*> left;  // not yet done
    absl::Status status;
    bool done = false;
  };
  // A sequence's share of a pass.
  struct Share {
    Request* request;
    Sequence* sequence;
    int64_t n_tokens;
    size_t first_row;  // of its output rows
    size_t n_rows;
  };

  void Step(std::unique_lock<std::mutex>& lock);
  std::vector<Share> Candidates();
  std::vector<Share> FormBatch(Batch* batch);
  bool TakeShare(Batch* batch, int64_t most_tokens, int64_t rows_left, Share* share) const;
  void Deliver(const std::vector<Share>& shares, std::span<const float> logits);
  void Settle();

  Model* model_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request*> queue_;
  bool leading_ = false;  // someone runs passes
};

}  // namespace trine

#endif  // TRINE_RUNTIME_BATCHER_H_
