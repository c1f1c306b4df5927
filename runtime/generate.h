// Generation: evaluate, sample, detokenise, watch for stop strings, again; one sequence or several
// in step, each on its own terms.
#ifndef TRINE_RUNTIME_GENERATE_H_
#define TRINE_RUNTIME_GENERATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  bool logits_hash = false;   // keep the exactness oracle; computes every row of the prompt
  bool show_special = false;  // control tokens appear in the text
  bool ignore_eos = false;    // end-of-generation tokens are tokens like others
};

enum class FinishReason {
  kNone,
  kLength,
  kEndOfText,
  kStopString,
  kContextFull,
  kCancelled,
  kCaller
};
const char* FinishReasonName(FinishReason reason);

// What one round of generation gave.
struct Generation {
  std::string text;
  std::vector<int32_t> tokens;  // an end-of-generation token is not among them
  FinishReason finish = FinishReason::kNone;
  int64_t prompt_tokens = 0;  // evaluated before the first one was sampled
  double prompt_ms = 0;
  double generate_ms = 0;
};

struct GenerateOptions {
  int64_t max_tokens = 256;  // -1: until the context is full
  // A piece of text that is final, whole UTF-8 characters. False ends the generation.
  std::function<bool(std::string_view text)> on_text;
  std::function<void(int64_t done, int64_t total)> on_prompt;  // tokens of the prompt read
};

// One conversation: a sequence with its sampler and its half-shown text. One thread at a time, but
// for Cancel. The engine outlives it.
class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(Engine* engine,
                                                         const SessionOptions& options);

  // Tokens of a prompt, evaluated by the next Generate or Evaluate.
  absl::Status Append(std::span<const int32_t> tokens);
  absl::Status AppendText(std::string_view text, const EncodeOptions& encode);
  // Back to the first n tokens; 0 starts afresh.
  void Truncate(int64_t n);
  absl::Status Evaluate();

  // The next token, which becomes part of the sequence. FAILED_PRECONDITION without logits of the
  // last token: nothing was evaluated.
  absl::StatusOr<int32_t> Sample();

  // Goes on from what has been appended. FAILED_PRECONDITION when that is nothing at all. What was
  // generated before an error stays in the sequence and in `result`.
  absl::Status Generate(const GenerateOptions& options, Generation* result);

  // From any thread; the call under way ends with CANCELLED, or, generating, with kCancelled.
  void Cancel() { sequence_->Cancel(); }

  Engine& engine() const { return *engine_; }
  const Sequence& sequence() const { return *sequence_; }
  std::span<const float> logits() const { return sequence_->logits(); }
  const LogitsHash& logits_hash() const { return hash_; }

 private:
  friend class GenerateLoop;
  friend absl::Status EvaluateTogether(std::span<Session* const> sessions);
  Session(Engine* engine, const SessionOptions& options, Sampler sampler, StopMatcher stop);

  Engine* engine_;
  SessionOptions options_;
  std::unique_ptr<Sequence> sequence_;
  Sampler sampler_;
  int64_t accepted_ = 0;  // tokens of the sequence the sampler knows of
  StopMatcher stop_;
  LogitsHash hash_;
};

// Brings the pending tokens of several sessions of one engine through the model together.
absl::Status EvaluateTogether(std::span<Session* const> sessions);

// Session::Generate for several sessions of one engine in step: their tokens share passes.
// `options` and `results` have one entry per session. The first error ends all.
absl::Status GenerateTogether(std::span<Session* const> sessions,
                              std::span<const GenerateOptions> options,
                              std::span<Generation> results);

}  // namespace trine

#endif  // TRINE_RUNTIME_GENERATE_H_
