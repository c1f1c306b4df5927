// A sequence of tokens and how far the model has read it: the log from which everything else about
// the sequence can be computed again. One thread at a time, but for Cancel.
#ifndef TRINE_RUNTIME_SEQUENCE_H_
#define TRINE_RUNTIME_SEQUENCE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/block_keeper.h"
#include "runtime/model/kv_blocks.h"
#include "runtime/model/kv_moves.h"
#include "runtime/prefix_cache.h"

namespace trine {

// Called for the logits row of every position, in order.
using RowObserver = std::function<void(int64_t position, std::span<const float> row)>;
// Called after each pass with the tokens read so far and in all.
using EvalProgress = std::function<void(int64_t done, int64_t total)>;

class Sequence {
 public:
  Sequence(std::shared_ptr<KvBlockPool> pool, int64_t n_vocab, int64_t max_context)
      : n_vocab_(n_vocab), max_context_(max_context), blocks_(std::move(pool)) {}

  // INVALID_ARGUMENT for an id outside the vocabulary, OUT_OF_RANGE beyond the context. All or
  // none.
  absl::Status Append(std::span<const int32_t> tokens);
  // Keeps the first n tokens, the last of them to be evaluated again.
  void Truncate(int64_t n);
  // Takes the tokens [begin, end) out. Those behind them move up and are evaluated again where they
  // then stand; the cache's blocks that they need stay reserved, but for those that others hold
  // too. INVALID_ARGUMENT for a range that is not there.
  absl::Status Erase(int64_t begin, int64_t end);

  // A sequence of its own with the same tokens, as far read, and with the same logits. Shares the
  // blocks: whoever writes into one that others hold does so in a copy. Without the observers. No
  // pass may hold tokens of it.
  std::unique_ptr<Sequence> Fork();

  // The fork, which has the same tokens and has read all of them, is taken for this one: what it
  // has read need not be read again. The observer is told of its last row. No pass may hold tokens
  // of either; the fork is of no further use.
  void TakeOver(Sequence* fork);
  // The last token is evaluated again by the next pass, with the same logits; those there are stay
  // until then, and the observer is told no second time.
  void ReadLastAgain();

  // Where it stands, to come back to. Takes no blocks of the cache, and no longer however many
  // tokens there are.
  struct Mark {
    int64_t size = 0;
    std::shared_ptr<const std::vector<float>> logits;  // of the last token, if there were any
  };
  Mark MarkHere();
  // Back to a mark of this sequence, or of the one that it is a fork of, of which the tokens are
  // still there. Nothing is computed. No pass may hold tokens of it.
  void Regress(const Mark& mark);

  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t evaluated() const { return evaluated_; }
  int64_t pending() const { return size() - evaluated_; }
  int64_t max_context() const { return max_context_; }
  // Of the last token; empty until it has been evaluated. From an engine for embeddings, here and
  // in observers: the row of the hidden state.
  std::span<const float> logits() const;

  // With an observer the logits of every position from `first` on are computed, not of the last one
  // alone.
  void set_row_observer(RowObserver observer, int64_t first = 0) {
    observer_ = std::move(observer);
    first_observed_ = first;
  }
  // Where the engine gives both (EngineOptions::hidden_rows): rows of the hidden state in place of
  // logits, here and in observers.
  void set_hidden(bool hidden) { hidden_ = hidden; }
  // The same, of the last token, beside its logits.
  void set_keeps_hidden(bool keeps) { keeps_hidden_ = keeps; }
  std::span<const float> hidden_row() const;  // empty where it has not been kept
  void set_progress(EvalProgress progress) { progress_ = std::move(progress); }
  // The full blocks that it reads are there for others of this space, and those of others for it.
  // With an observer it adopts none: every row has to be computed.
  void set_prefix_space(std::string space) { prefix_space_ = std::move(space); }
  void leave_prefix_space() { prefix_space_.reset(); }
  // Tokens that it need not read, as others of its space had done so.
  int64_t cached_tokens() const { return cached_tokens_; }

  // From any thread: an evaluation under way stops with CANCELLED after its current pass, a later
  // one at once. Holds until ClearCancel.
  void Cancel() { cancelled_ = true; }
  void ClearCancel() { cancelled_ = false; }
  bool cancelled() const { return cancelled_ || (cancelled_with_ != nullptr && *cancelled_with_); }
  // Whoever cancels the other one cancels this one. The other one outlives it.
  void set_cancelled_with(const Sequence& other) { cancelled_with_ = &other.cancelled_; }

 private:
  friend class Batcher;
  bool Observes(int64_t position) const {
    return observer_ && position >= first_observed_ && position >= replay_until_;
  }
  void BackTo(int64_t evaluated);
  // Room for positions [begin, end), which no other sequence sees, and what has to be copied for
  // it.
  absl::Status Reserve(int64_t begin, int64_t end, KvMoves* moves);
  // Whether the token at `position`, behind those that passes hold, needs nothing but to be
  // written: there is room for it, or was enough to be taken now, and no one else sees it.
  bool HasRoomAhead(int64_t position);
  void SetLogits(std::span<const float> row, int64_t position);
  void SetHiddenRow(std::span<const float> row, int64_t position) {
    hidden_row_.assign(row.begin(), row.end());
    hidden_position_ = position;
  }
  // A pass has been through all stages, and what had to be moved for it is where it should be; or
  // none has, and it is not.
  void Settle() { unsettled_.reset(); }
  void DistrustUnsettled();
  // The cache's contents are gone, with the model that made them: all tokens are read again.
  void BeginReplay(uint64_t epoch) {
    replay_until_ = std::max(replay_until_, evaluated_);
    DropFetch();
    BackTo(0);
    epoch_ = epoch;
  }
  // The batcher's leader's, while the owner waits; under the batcher's mutex, so that the epoch
  // stays what it is, and no pass may hold tokens of it.
  void AdoptFrom(PrefixCache* cache);
  void OfferTo(PrefixCache* cache);
  // Whether blocks of it are being looked for; `told` is called when they no longer are. Looks for
  // them where it has not yet.
  bool AwaitsBlocks(BlockKeeper* keeper, const std::function<void()>& told);
  // It has other tokens now than were looked for.
  void DropFetch() {
    fetch_.reset();
    fetched_for_ = -1;
  }
  // Those that were found are its own when a pass has done this.
  absl::Status TakeFetched(KvMoves* moves);

  const int64_t n_vocab_;
  const int64_t max_context_;
  BlockTable blocks_;
  std::vector<int32_t> tokens_;
  int64_t evaluated_ = 0;
  std::shared_ptr<std::vector<float>> logits_;
  bool logits_lent_ = false;      // a mark or a fork may have them: they are not written to
  int64_t logits_position_ = -1;  // that they belong to
  bool hidden_ = false;
  bool keeps_hidden_ = false;
  std::vector<float> hidden_row_;
  int64_t hidden_position_ = -1;  // that it belongs to
  RowObserver observer_;
  int64_t first_observed_ = 0;
  EvalProgress progress_;
  std::optional<int64_t> unsettled_;  // from this position on what is read hangs on a pass's moves
  int64_t replay_until_ = 0;  // positions before it were evaluated once, and who asked was told
  std::optional<std::string> prefix_space_;
  int64_t offered_ = 0;      // tokens in blocks that the tree has, or had
  int64_t looked_for_ = -1;  // tokens when others' blocks were looked for
  int64_t cached_tokens_ = 0;
  std::shared_ptr<BlockKeeper::Fetch> fetch_;  // null: none was begun, or it was taken
  int64_t fetched_for_ = -1;                   // tokens when the last one was begun,
  uint64_t fetched_in_ = 0;                    // and the epoch
  std::atomic<bool> cancelled_{false};
  const std::atomic<bool>* cancelled_with_ = nullptr;

  // The batcher's, under its mutex.
  uint64_t epoch_ = 0;     // of the model whose cache holds what is evaluated
  int64_t in_flight_ = 0;  // tokens behind the evaluated ones that passes hold
  std::chrono::steady_clock::time_point landed_at_;  // its last pass
  uint64_t served_ = 0;                              // the last pass that took tokens of it
  bool waiting_ = false;                             // its owner is in a call
};

}  // namespace trine

#endif  // TRINE_RUNTIME_SEQUENCE_H_
