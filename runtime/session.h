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

  // The next token, which becomes part of the sequence. FAILED_PRECONDITION without logits of the
  // last token: nothing was evaluated.
  // With a constraint, `tokens_left` is how many may still come: it closes in time.
  absl::StatusOr<int32_t> Sample(int64_t tokens_left = ConstraintState::kNoLimit);
  // The same token, with its log-probability and those of the `n_top` best.
  absl::StatusOr<int32_t> SampleWithLogprobs(int32_t n_top, SampleResult* result,
                                             int64_t tokens_left = ConstraintState::kNoLimit);

  // Where the answer stands in the constraint; nullptr without one. Until the session is used
  // again.
  absl::StatusOr<const ConstraintState*> FollowConstraint();

  // From any thread: the call under way, or else the next one, ends with CANCELLED, a generation
  // with kCancelled.
  void Cancel() { sequence_->Cancel(); }

  Engine& engine() const { return *engine_; }
  const Sequence& sequence() const { return *sequence_; }
  std::span<const float> logits() const { return sequence_->logits(); }
  const LogitsHash& logits_hash() const { return hash_; }
  bool keeps_logits_hash() const { return options_.logits_hash; }

 private:
  friend class GenerateLoop;
  friend absl::Status EvaluateTogether(std::span<Session* const> sessions);
  Session(Engine* engine, const SessionOptions& options, Sampler sampler, StopMatcher stop);
  void BeginText();  // what is generated next begins a text of its own
  absl::StatusOr<int32_t> SampleNext(int32_t n_top, SampleResult* result,  // null: the token alone
                                     int64_t tokens_left);
  absl::StatusOr<int32_t> SampleQuietly(int32_t n_top, SampleResult* result,  // and untraced
                                        int64_t tokens_left);

  Engine* engine_;
  SessionOptions options_;
  std::unique_ptr<Sequence> sequence_;
  Sampler sampler_;
  int64_t accepted_ = 0;  // tokens of the sequence the sampler knows of
  Detokenizer detokenizer_;
  StopMatcher stop_;
  bool text_goes_on_ = false;  // characters or stop strings may be half complete
  int64_t answer_begin_ = 0;   // the first token that is not of the prompt
  std::optional<ConstraintState> constraint_state_;
  int64_t followed_ = 0;  // tokens of the sequence the state knows of, or need not
  std::vector<uint32_t> allowed_;
  LogitsHash hash_;
};

// Brings the pending tokens of several sessions of one engine through the model together.
absl::Status EvaluateTogether(std::span<Session* const> sessions);

}  // namespace trine

#endif  // TRINE_RUNTIME_SESSION_H_
