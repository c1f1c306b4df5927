// Evaluates a sequence: puts its tokens into batches, delivers the rows of passes to it, shares its
// blocks and begins replays. Only runtime/batch uses it; owners of sequences use sequence.h.
//
// An evaluation is a handle, like a pointer: it owns nothing and is valid as long as its sequence.
// The leader, or a thread that holds the batcher's lock, may use it while the owner of the sequence
// is in a call or has left tokens in flight. During that time the owner does not touch the
// sequence, so the leader needs no lock for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/batch/sequence.h"
#include "runtime/kv/block_keeper.h"
#include "runtime/kv/prefix_cache.h"
#include "runtime/model/run/kv_blocks.h"
#include "runtime/model/run/model.h"

namespace trine {

struct PassShare;

// The output rows of a pass.
struct PassRows {
  std::span<const float> values, hidden;
  size_t width = 0, hidden_width = 0;

  std::span<const float> row(size_t index, bool of_hidden) const {
    return of_hidden ? hidden.subspan(index * hidden_width, hidden_width)
                     : values.subspan(index * width, width);
  }
};

class Sequence::Evaluation {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Evaluation(Sequence* sequence) : s_(sequence) {}
  bool operator==(const Evaluation&) const = default;
  const Sequence* get() const { return s_; }
  const Sequence* operator->() const { return s_; }

  // Returns the number of tokens in passes, after the evaluated tokens.
  int64_t in_flight() const { return s_->in_flight_; }
  // Returns the number of pending tokens that are in no pass.
  int64_t left() const { return s_->pending() - s_->in_flight_; }
  // Returns the number of the last pass with tokens of the sequence.
  uint64_t served() const { return s_->served_; }
  // Returns whether the sequence's owner is in a call.
  bool waiting() const { return s_->waiting_; }
  void set_waiting(bool waiting) const { s_->waiting_ = waiting; }
  // Returns when the pass finished whose rows were delivered last.
  Clock::time_point finished_at() const { return s_->finished_at_; }
  void set_finished_at(Clock::time_point when) const { s_->finished_at_ = when; }

  // Returns the epoch of the model whose KV cache holds the evaluated tokens.
  uint64_t epoch() const { return s_->epoch_; }
  // Lets all tokens be evaluated again, because the KV cache of the last epoch is gone.
  void BeginReplay(uint64_t epoch) const;
  // Does nothing while a pass holds tokens of the sequence. Otherwise lets tokens be evaluated
  // again if they depend on block moves of a failed pass, then adopts blocks from the cache, if
  // there is one. REQUIRES: the caller holds the lock, so the epoch does not change.
  void CatchUp(PrefixCache* cache) const;
  // Offers full blocks to the cache, unless a pass holds tokens of the sequence. REQUIRES: the
  // caller holds the lock.
  void OfferTo(PrefixCache* cache) const;
  // Returns whether a fetch of blocks is running. Begins one unless there has been a fetch for
  // these tokens. The keeper calls `told` when the fetch is done.
  bool AwaitsBlocks(BlockKeeper* keeper, const std::function<void()>& told) const;

  // Adds at most `most_tokens` tokens with at most `most_rows` wanted rows to the batch.
  // `save_blocks`: if the sequence has a space, the pass also reads back the blocks that it fills,
  // for the keeper. Fails if the KV cache has no room.
  absl::StatusOr<PassShare> Take(int64_t most_tokens, int64_t most_rows, bool save_blocks,
                                 Batch* batch) const;
  // Adds to a batch the token that will follow a share of one token, as yet unknown. Returns false
  // if it can't be foreseen where that token goes.
  bool Foresee(const PassShare& share, Batch* batch) const;
  // Record that a pass with this number holds the share, and that no pass holds it any more.
  void Begin(const PassShare& share, uint64_t pass) const;
  void End(const PassShare& share) const;
  // Records that no pass holds any token of the sequence.
  void EndAll() const { s_->in_flight_ = 0; }
  // Delivers the rows of the share to the observer and to the logits. Throws what observers throw.
  void Deliver(const PassShare& share, const PassRows& rows) const;
  // Gives the blocks that the share has filled to the keeper.
  void Keep(const PassShare& share, BlockKeeper* keeper) const;

 private:
  void DistrustUnsettled() const;
  void AdoptFrom(PrefixCache* cache) const;
  absl::Status TakeFetched(KvMoves* moves) const;
  absl::Status Reserve(int64_t begin, int64_t end, KvMoves* moves) const;
  bool HasRoomAhead(int64_t position) const;
  void SaveFilled(Batch* batch, PassShare* share) const;
  void SetLogits(std::span<const float> row, int64_t position) const;

  Sequence* s_;
};

// A sequence's share of a pass.
struct PassShare {
  // A block that the pass fills, for the block keeper.
  struct Filled {
    int64_t number;  // its index in the sequence
    std::shared_ptr<const KvBlockBytes> bytes;
  };

  Sequence::Evaluation sequence;
  int64_t begin = 0;  // the position of its first token
  int64_t n_tokens = 0;
  int64_t replayed = 0;  // how many of its tokens an earlier placement has evaluated
  size_t first_row = 0;  // the index of its first output row
  size_t n_rows = 0;
  std::vector<Filled> filled = {};
};

}  // namespace trine
