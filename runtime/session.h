// A conversation: a sequence with its sampler and its half-shown text. One thread at a time, but
// for Cancel. The engine outlives it.
#ifndef TRINE_RUNTIME_SESSION_H_
#define TRINE_RUNTIME_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/constraint/constraint.h"
#include "runtime/engine.h"
#include "runtime/logits_hash.h"
#include "runtime/sampling/sampler.h"
#include "runtime/sampling/stop_matcher.h"
#include "runtime/sequence.h"
#include "runtime/tokenizer/detokenizer.h"

namespace trine {

struct SessionOptions {
  SamplerOptions sampler;
  std::vector<std::string> stop;
  bool logits_hash = false;  // keep the exactness oracle; computes every row of the prompt
  // Called for the logits of every position, as the oracle is.
  RowObserver on_row = nullptr;
  bool show_special = false;  // control tokens appear in the text
  bool ignore_eos = false;    // end-of-generation tokens are tokens like others
  // Every answer is a text of this: what is generated behind the tokens appended last. Made with
  // the engine's vocabulary.
  std::shared_ptr<const Constraint> constraint;
  // What its text begins with is shared with sessions of the same space, and with no others
  // (docs/prefix-cache.md). Absent: with none. One that keeps the logits hash reads all of its own.
  std::optional<std::string> prefix_space;
};

class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(Engine* engine,
                                                         const SessionOptions& options);

  // Tokens of a prompt, evaluated by the next Evaluate or generation.
  absl::Status Append(std::span<const int32_t> tokens);
  absl::Status AppendText(std::string_view text, const EncodeOptions& encode);
  // What is generated next is an answer of its own, whatever the tokens before it were.
  void BeginAnswer();
  // Back to the first n tokens; 0 starts afresh. The last one that stays is evaluated again, so
  // that a generation can go on from there.
  void Truncate(int64_t n);
  // Takes the tokens [begin, end) out; what is behind them is evaluated again at its new place. The
  // text at the end goes on, unless it is the end that goes. INVALID_ARGUMENT for a range that is
  // not there.
  absl::Status Erase(int64_t begin, int64_t end);
  absl::Status Evaluate();

  // A point in time to come back to, however often: tokens and what has been read of them, logits,
  // the sampler with its count of draws, text that is half shown, where the answer stands in its
  // constraint, the logits hash. Takes no blocks of the cache and no time that grows with the
  // tokens. Forgotten when the session goes back to an earlier one, or loses tokens that it has.
  absl::StatusOr<int64_t> Checkpoint();
  // The same without a number, for whoever goes back to it at once or not at all: what stands
  // before it stays as it is meanwhile.
  class Place;
  Place Here();
  void GoBack(Place place);  // without copies, which there may be no memory for
  // NOT_FOUND for a point that there is not, or no longer. Nothing is computed.
  absl::Status Regress(int64_t t);
  // Lets go of the logits it keeps; others stay. NOT_FOUND likewise.
  absl::Status Forget(int64_t t);
  size_t checkpoints() const { return checkpoints_.size(); }
  // All of them, in their order.
  struct CheckpointInfo {
    int64_t t = 0;
    int64_t tokens = 0;
  };
  std::vector<CheckpointInfo> ListCheckpoints() const;
  // Another session that stands where this one does, without its checkpoints. They share the
  // cache's blocks and know nothing of each other. With a seed the fork draws other tokens than its
  // origin would.
  absl::StatusOr<std::unique_ptr<Session>> Fork(std::optional<uint64_t> seed = std::nullopt);

  // The next token, which becomes part of the sequence. FAILED_PRECONDITION without logits of the
  // last token: nothing was evaluated.
  // With a constraint, `tokens_left` is how many may still come: it closes in time.
  absl::StatusOr<int32_t> Sample(int64_t tokens_left = ConstraintState::kNoLimit);
  // The same token, with its log-probability and those of the `n_top` best.
  absl::StatusOr<int32_t> SampleWithLogprobs(int32_t n_top, SampleResult* result,
                                             int64_t tokens_left = ConstraintState::kNoLimit);

  // The row of the hidden state after the final norm, of the last token; what is pending is
  // evaluated first. Until the session is used again. The first time the token is read once more;
  // from then on the row is kept where tokens are read. FAILED_PRECONDITION for a session without
  // tokens, or on an engine without hidden_rows.
  absl::StatusOr<std::span<const float>> HiddenRow();

  // Where the answer stands in the constraint; nullptr without one. Until the session is used
  // again.
  absl::StatusOr<const ConstraintState*> FollowConstraint();

  // From any thread: the call under way, or else the next one, ends with CANCELLED, a generation
  // with kCancelled.
  void Cancel() { sequence_->Cancel(); }
  // One that came when nothing was under way any more is not for the next call.
  void ClearCancel() { sequence_->ClearCancel(); }

  Engine& engine() const { return *engine_; }
  const Sequence& sequence() const { return *sequence_; }
  std::span<const float> logits() const { return sequence_->logits(); }
  const LogitsHash& logits_hash() const { return hash_; }
  bool keeps_logits_hash() const { return options_.logits_hash; }

 private:
  friend class GenerateLoop;
  friend absl::Status EvaluateTogether(std::span<Session* const> sessions);
  // What changes from token to token, beside the sequence and the sampler.
  struct State {
    int64_t accepted = 0;  // tokens of the sequence the sampler knows of
    Detokenizer detokenizer;
    StopMatcher stop;
    bool text_goes_on = false;  // characters or stop strings may be half complete
    int64_t answer_begin = 0;   // the first token that is not of the prompt
    std::optional<ConstraintState> constraint = {};
    int64_t followed = 0;  // tokens of the sequence the constraint's state knows of, or need not
  };
  struct Point {
    int64_t t;
    Sequence::Mark sequence;
    SamplerState sampler;
    State state;
  };
  Session(Engine* engine, const SessionOptions& options, std::unique_ptr<Sequence> sequence,
          Sampler sampler, State state);
  // No pass has tokens of the sequence any more.
  void Rest();
  Point PointHere();
  void Restore(Point point);
  std::vector<Point>::iterator FindPoint(int64_t t);
  void ForgetBeyond(int64_t n_tokens);
  void BeginText();  // what is generated next begins a text of its own
  // The mask of what the constraint allows; empty: all.
  absl::StatusOr<std::span<const uint32_t>> AllowedTokens(int64_t tokens_left);
  absl::StatusOr<int32_t> SampleNext(int32_t n_top, SampleResult* result,  // null: the token alone
                                     int64_t tokens_left);
  absl::StatusOr<int32_t> SampleQuietly(int32_t n_top, SampleResult* result,  // and untraced
                                        int64_t tokens_left);

  Engine* engine_;
  SessionOptions options_;
  std::unique_ptr<Sequence> sequence_;
  Sampler sampler_;
  State state_;
  int64_t next_point_ = 0;
  std::vector<Point> checkpoints_;  // by time, and so by size
  std::vector<uint32_t> allowed_;
  // What the next token is sampled from in place of the sequence's logits; empty: those.
  std::span<const float> reranked_;
  LogitsHash hash_;
};

class Session::Place {
 private:
  friend class Session;
  explicit Place(Point point) : point_(std::move(point)) {}
  Point point_;
};

// Brings the pending tokens of several sessions of one engine through the model together.
absl::Status EvaluateTogether(std::span<Session* const> sessions);

}  // namespace trine

#endif  // TRINE_RUNTIME_SESSION_H_
