// A conversation with an engine: a sequence with its sampler, grammar and text. One thread at a
// time may use a session; any thread may call Cancel. The engine must outlive the session.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/logits_hash.h"
#include "runtime/batch/sequence.h"
#include "runtime/constraint/mask/constraint.h"
#include "runtime/engine/engine.h"
#include "runtime/sampling/sampler.h"
#include "runtime/sampling/stop_matcher.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

struct SessionOptions {
  SamplerOptions sampler;
  std::vector<std::string> stop;  // texts that end a generation
  bool logits_hash = false;       // keeps the logits hash; the engine then computes all logits
  // Called with the logits of each position, in order, once for each. The engine then computes the
  // logits of all positions.
  RowObserver on_row = nullptr;
  bool show_special = false;  // control tokens appear in the text
  bool ignore_eos = false;    // end-of-generation tokens do not end the text
  // The grammar that every answer follows. An answer is what is generated after the last Append.
  // Must be made with the engine's vocabulary. null: none.
  std::shared_ptr<const Constraint> constraint;
  // The space in which this session shares KV blocks with sessions that begin with the same tokens
  // (docs/prefix-cache.md). nullopt: it shares none. A session with logits_hash or on_row uses no
  // blocks of others, because it needs the logits of all positions.
  std::optional<std::string> prefix_space;
};

class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(Engine* engine,
                                                         const SessionOptions& options);

  // Appends tokens of a prompt and begins a new answer. The next Evaluate or generation evaluates
  // them.
  absl::Status Append(std::span<const int32_t> tokens);
  absl::Status AppendText(std::string_view text, const EncodeOptions& encode);
  // Begins a new answer after the present tokens: forgets incomplete characters and the beginnings
  // of stop strings, and restarts the grammar.
  void BeginAnswer();
  // Drops all tokens but the first n. Token n - 1 is evaluated again, because its logits are needed
  // to continue. Truncate(0) also sets the sampler's count of draws to 0.
  void Truncate(int64_t n);
  // Removes tokens [begin, end). Later tokens move up and are evaluated again at their new
  // positions. An incomplete character or stop string at the end is kept, unless the last token was
  // removed. Returns INVALID_ARGUMENT for a range outside of the sequence, FAILED_PRECONDITION for
  // a range with tokens of a constrained answer.
  absl::Status Erase(int64_t begin, int64_t end);
  // Evaluates the tokens that have not been evaluated.
  absl::Status Evaluate();

  // Makes a checkpoint and returns its number. Regress can go back to it any number of times. It
  // holds the number of evaluated tokens, the logits, the sampler's state, incomplete text, the
  // grammar's state and the logits hash. It holds no KV blocks, and making it takes the same time
  // for any number of tokens. The session drops a checkpoint when it goes back to an earlier one,
  // and when tokens of the checkpoint are removed.
  absl::StatusOr<int64_t> Checkpoint();
  // A checkpoint without a number, to go back to once or never. REQUIRES: the tokens before it do
  // not change until then.
  class Place;
  Place Here();
  void GoBack(Place place);  // copies nothing, so it can't run out of memory
  // Goes back to checkpoint t and drops all later ones. Computes nothing. Returns NOT_FOUND if
  // there is no checkpoint t.
  absl::Status Regress(int64_t t);
  // Drops checkpoint t. Returns NOT_FOUND if there is none.
  absl::Status Forget(int64_t t);
  size_t checkpoints() const { return checkpoints_.size(); }
  struct CheckpointInfo {
    int64_t t = 0;       // its number
    int64_t tokens = 0;  // how many tokens the session had
  };
  // Returns all checkpoints, the oldest first.
  std::vector<CheckpointInfo> ListCheckpoints() const;
  // Returns an independent session in the same state, without the checkpoints. The two share
  // blocks. With a seed the fork draws other tokens than this session would.
  absl::StatusOr<std::unique_ptr<Session>> Fork(std::optional<uint64_t> seed = std::nullopt);

  // Samples the next token and appends it. Returns FAILED_PRECONDITION if the last token has not
  // been evaluated, OUT_OF_RANGE if the context is full. `tokens_left` is the number of tokens that
  // may still be generated: a constraint allows only tokens after which the rest is enough to
  // finish the answer.
  absl::StatusOr<int32_t> Sample(int64_t tokens_left = ConstraintState::kNoLimit);
  // Does what Sample does. Also sets *result to the token, its log-probability, and the `n_top`
  // most probable tokens.
  absl::StatusOr<int32_t> SampleWithLogprobs(int32_t n_top, SampleResult* result,
                                             int64_t tokens_left = ConstraintState::kNoLimit);

  // Evaluates pending tokens and returns the last token's row of the hidden state, after the final
  // norm. The row is valid until the session is used again. The first call evaluates the last token
  // a second time, because its row was not kept; later evaluations keep the row. Returns
  // FAILED_PRECONDITION for a session without tokens, or an engine without hidden_rows.
  absl::StatusOr<std::span<const float>> HiddenRow();

  // Feeds the answer's new tokens to the constraint and returns the constraint's state, or null
  // without a constraint. The state is valid until the session is used again.
  absl::StatusOr<const ConstraintState*> FollowConstraint();

  // Ends the current call, or the next one if there is none: Evaluate returns CANCELLED, and a
  // generation finishes with FinishReason::kCancelled. Any thread may call it.
  void Cancel() { sequence_->Cancel(); }
  // Forgets a Cancel that came after its call had ended.
  void ClearCancel() { sequence_->ClearCancel(); }

  Engine& engine() const { return *engine_; }
  const Sequence& sequence() const { return *sequence_; }
  std::span<const float> logits() const { return sequence_->logits(); }
  const LogitsHash& logits_hash() const { return hash_; }
  bool keeps_logits_hash() const { return options_.logits_hash; }

 private:
  friend class GenerateLoop;
  friend absl::Status EvaluateTogether(std::span<Session* const> sessions);
  // The state that changes with each token and is neither in the sequence nor in the sampler.
  struct State {
    int64_t accepted = 0;  // tokens that the sampler has accepted
    Detokenizer detokenizer;
    StopMatcher stop;
    bool text_goes_on = false;  // an incomplete character or stop string waits for the next round
    int64_t answer_begin = 0;   // the index of the answer's first token
    std::optional<ConstraintState> constraint = {};
    int64_t followed = 0;  // tokens before this index were fed to `constraint` or are the prompt's
  };
  struct Point {
    int64_t t;
    Sequence::Mark sequence;
    SamplerState sampler;
    State state;
  };
  Session(Engine* engine, const SessionOptions& options, std::unique_ptr<Sequence> sequence,
          Sampler sampler, State state);
  // Waits until no pass holds tokens of the sequence.
  void Rest();
  Point PointHere();
  void Restore(Point point);
  absl::StatusOr<std::vector<Point>::iterator> FindPoint(int64_t t);
  void ForgetBeyond(int64_t n_tokens);
  void BeginText();  // the next generated token begins a new text
  // Returns the mask of tokens that the constraint allows; empty: all.
  absl::StatusOr<std::span<const uint32_t>> AllowedTokens(int64_t tokens_left);
  // `result` is null if no log-probabilities are wanted. Records no trace event.
  absl::StatusOr<int32_t> SampleQuietly(int32_t n_top, SampleResult* result, int64_t tokens_left);

  Engine* engine_;
  SessionOptions options_;
  std::unique_ptr<Sequence> sequence_;
  Sampler sampler_;
  State state_;
  int64_t next_point_ = 0;
  std::vector<Point> checkpoints_;  // in the order of t, and so of their numbers of tokens
  std::vector<uint32_t> allowed_;
  // The logits that a head has changed, for the next Sample only. Empty: the sequence's own.
  std::span<const float> reranked_;
  LogitsHash hash_;
};

class Session::Place {
 private:
  friend class Session;
  explicit Place(Point point) : point_(std::move(point)) {}
  Point point_;
};

// Evaluates the pending tokens of several sessions of one engine together.
absl::Status EvaluateTogether(std::span<Session* const> sessions);

}  // namespace trine
