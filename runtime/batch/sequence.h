// A sequence of tokens and the number of them that have been evaluated. Everything else about the
// sequence can be computed again from its tokens. One thread may use it at a time; Cancel may be
// called from any thread.
#pragma once

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
#include "runtime/kv/block_keeper.h"
#include "runtime/model/run/kv_blocks.h"

namespace trine {

// Receives the logits of every observed position, in order.
using RowObserver = std::function<void(int64_t position, std::span<const float> row)>;
// Receives, after each pass, the number of evaluated tokens and the number of all tokens.
using EvalProgress = std::function<void(int64_t done, int64_t total)>;

class Sequence {
 public:
  Sequence(std::shared_ptr<KvBlockPool> pool, int64_t n_vocab, int64_t max_context)
      : n_vocab_(n_vocab), max_context_(max_context), blocks_(std::move(pool)) {}

  // Appends all tokens or none. Returns INVALID_ARGUMENT if an id is outside the vocabulary, and
  // OUT_OF_RANGE if the context would be exceeded.
  absl::Status Append(std::span<const int32_t> tokens);
  // Keeps the first n tokens. The last token that stays is evaluated again, for its logits.
  void Truncate(int64_t n);
  // Removes the tokens [begin, end). Later tokens move up and are evaluated again at their new
  // positions; their blocks stay reserved, except shared blocks. Returns INVALID_ARGUMENT if the
  // range is not within the sequence.
  absl::Status Erase(int64_t begin, int64_t end);

  // Returns a sequence with the same tokens, evaluated tokens and logits, but without the
  // observers. The two share blocks; a sequence that writes into a shared block writes into a copy
  // of it. REQUIRES: no pass holds tokens of this sequence.
  std::unique_ptr<Sequence> Fork();

  // Takes over the blocks and logits of a fork that has the same tokens, all evaluated, so that
  // they need not be evaluated again. Calls the observer with the last row. The fork can only be
  // destroyed afterwards. REQUIRES: no pass holds tokens of either sequence.
  void TakeOver(Sequence* fork);
  // Lets the next pass evaluate the last token again, with the same logits. The logits stay
  // readable until then, and the observer is not called a second time.
  void ReadLastAgain();

  // A state of the sequence to return to. Holds no blocks; making a mark takes the same time for
  // any number of tokens.
  struct Mark {
    int64_t size = 0;
    std::shared_ptr<const std::vector<float>> logits;  // the last token's; null: there were none
  };
  Mark MarkHere();
  // Returns to a mark of this sequence, or of the sequence that it was forked from. Computes
  // nothing. REQUIRES: the mark's tokens have not been changed since, and no pass holds tokens of
  // this sequence.
  void Regress(const Mark& mark);

  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t evaluated() const { return evaluated_; }
  int64_t pending() const { return size() - evaluated_; }
  int64_t max_context() const { return max_context_; }
  // Returns the logits of the last token; empty until it has been evaluated. If the engine is for
  // embeddings, logits and observed rows are rows of the hidden state.
  std::span<const float> logits() const;

  // Sets an observer, which receives the logits of every position from `first` on. Without an
  // observer only the logits of the last position are computed.
  void set_row_observer(RowObserver observer, int64_t first = 0) {
    observer_ = std::move(observer);
    first_observed_ = first;
  }
  // Makes logits() and observers give rows of the hidden state instead of logits. REQUIRES: the
  // engine computes both (EngineOptions::hidden_rows).
  void set_hidden(bool hidden) { hidden_ = hidden; }
  // Keeps the last token's row of the hidden state, in addition to its logits.
  void set_keeps_hidden(bool keeps) { keeps_hidden_ = keeps; }
  std::span<const float> hidden_row() const;  // empty: the row was not kept
  void set_progress(EvalProgress progress) { progress_ = std::move(progress); }
  // Shares full blocks with other sequences of this space, in both directions. A sequence with an
  // observer adopts no blocks, because all of its rows have to be computed.
  void set_prefix_space(std::string space) { prefix_space_ = std::move(space); }
  void leave_prefix_space() { prefix_space_.reset(); }
  // Returns the number of tokens that this sequence did not evaluate itself, because their blocks
  // were shared or fetched.
  int64_t cached_tokens() const { return cached_tokens_; }

  // Stops the current evaluation after its pass in flight, and later evaluations at once, with
  // CANCELLED. Lasts until ClearCancel. May be called from any thread.
  void Cancel() { cancelled_ = true; }
  void ClearCancel() { cancelled_ = false; }
  bool cancelled() const { return cancelled_ || (cancelled_with_ != nullptr && *cancelled_with_); }
  // Lets this sequence be cancelled together with `other`, which must outlive it.
  void set_cancelled_with(const Sequence& other) { cancelled_with_ = &other.cancelled_; }

  // The interface of the code that evaluates the sequence. See sequence_evaluation.h.
  class Evaluation;

 private:
  // Returns how many of the first n_tokens tokens are in full blocks.
  static int64_t InFullBlocks(int64_t n_tokens);
  bool Observes(int64_t position) const {
    return observer_ && position >= first_observed_ && position >= replay_until_;
  }
  // Keeps the first `evaluated` positions. The next pass writes from there on.
  void BackTo(int64_t evaluated);
  // Forgets the fetch: the tokens have changed.
  void DropFetch() {
    fetch_.reset();
    fetched_for_ = -1;
  }

  const int64_t n_vocab_;
  const int64_t max_context_;
  BlockTable blocks_;
  std::vector<int32_t> tokens_;
  int64_t evaluated_ = 0;
  std::shared_ptr<std::vector<float>> logits_;
  bool logits_lent_ = false;      // shared with a mark or a fork: must not be written
  int64_t logits_position_ = -1;  // the position of logits_
  bool hidden_ = false;
  bool keeps_hidden_ = false;
  std::vector<float> hidden_row_;
  int64_t hidden_position_ = -1;  // the position of hidden_row_
  RowObserver observer_;
  int64_t first_observed_ = 0;
  EvalProgress progress_;
  std::optional<int64_t> unsettled_;  // blocks from this position on depend on moves of a pass
  int64_t replay_until_ = 0;          // earlier positions have been delivered once
  std::optional<std::string> prefix_space_;
  int64_t offered_ = 0;      // tokens whose blocks were offered to the prefix cache
  int64_t looked_for_ = -1;  // size() at the last lookup in the prefix cache
  int64_t cached_tokens_ = 0;
  std::shared_ptr<BlockKeeper::Fetch> fetch_;  // null: not begun, or its blocks were taken
  int64_t fetched_for_ = -1;                   // size() when the last fetch began
  uint64_t fetched_in_ = 0;                    // the epoch when the last fetch began
  std::atomic<bool> cancelled_{false};
  const std::atomic<bool>* cancelled_with_ = nullptr;

  // Only Evaluation uses these.
  uint64_t epoch_ = 0;     // the epoch of the model whose KV cache holds the evaluated tokens
  int64_t in_flight_ = 0;  // tokens in passes, after the evaluated tokens
  std::chrono::steady_clock::time_point finished_at_;  // when its last pass finished
  uint64_t served_ = 0;   // the number of the last pass with tokens of the sequence
  bool waiting_ = false;  // the owner is in a call
};

}  // namespace trine
