// Generates text: evaluates, samples, detokenises and watches for stop strings, token by token. One
// call can generate for several sessions, each with its own options.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/rerank.h"
#include "runtime/engine/session.h"

namespace trine {

enum class FinishReason {
  kNone,
  kLength,
  kEndOfText,
  kStopString,
  kContextFull,
  kCancelled,
  kCaller  // on_token or on_text returned false
};
const char* FinishReasonName(FinishReason reason);

// The result of one round of generation. A round generates the text after the appended tokens.
struct Generation {
  std::string text;
  std::vector<int32_t> tokens;         // without an end-of-generation token
  std::vector<SampleResult> logprobs;  // one per token, if GenerateOptions::logprobs >= 0
  int64_t n_tokens = 0;                // the number of tokens, even if `tokens` is not collected
  FinishReason finish = FinishReason::kNone;
  int64_t context_shifts = 0;
  bool complete = true;       // false: the answer was cut and does not match its constraint
  int64_t prompt_tokens = 0;  // new tokens before the first sampled one
  int64_t cached_tokens = 0;  // prompt tokens found in blocks of other sessions
  double prompt_ms = 0;
  double generate_ms = 0;
  double sample_ms = 0;  // the part of both for sampling tokens and calling callbacks
  // The number of tokens for which reranking tried candidates, the number of candidates that it
  // tried, and the time that this took. The time includes evaluating the candidates that were then
  // chosen.
  int64_t reranked_tokens = 0;
  int64_t rerank_candidates = 0;
  double rerank_ms = 0;  // a part of generate_ms
};

struct GenerateOptions {
  int64_t max_tokens = 256;  // 0: only evaluates the prompt; -1: until the context is full
  // The number of most probable tokens whose log-probabilities are given with each token's own; -1:
  // no log-probabilities.
  int32_t logprobs = -1;
  // true: text, tokens and log-probabilities are kept in the result. Set it to false if the
  // callbacks are enough.
  bool collect = true;
  // true: when the context is full, keeps the first `keep` tokens, removes half of the others, and
  // evaluates the rest again at their new positions (docs/numerics.md, "Context shift"). false:
  // generation ends when the context is full.
  bool context_shift = false;
  int64_t keep = 0;  // how many of the prompt's tokens are kept, at least its BOS; -1: all
  // Lets a head rate the candidates for each token; null: tokens are chosen by their logits alone.
  // Must be of the session's engine.
  std::shared_ptr<const Rerank> rerank = nullptr;
  // true: another round follows. An incomplete character or stop string at the end of this round is
  // held back for the next round.
  bool more_follows = false;
  // Called with each chosen token, before its text. If it returns false, generation ends.
  std::function<bool(const SampleResult& token)> on_token;
  // true: on_token is also called for the token that ended the text. That token is no part of the
  // answer.
  bool tell_end = false;
  // Called with text that is final, in whole UTF-8 characters. If it returns false, generation
  // ends.
  std::function<bool(std::string_view text)> on_text;
  // Called with the number of the prompt's tokens that are evaluated, and of all its tokens.
  std::function<void(int64_t done, int64_t total)> on_prompt;
};

// The largest value of GenerateOptions::logprobs.
inline constexpr int32_t kMaxLogprobs = 1024;

// Returns the errors that Generate returns before it does anything: FAILED_PRECONDITION if nothing
// has been appended, INVALID_ARGUMENT for numbers that make no sense.
absl::Status CheckGenerate(const Session& session, const GenerateOptions& options);

// Evaluates the appended tokens and generates the text that follows them. After an error, the
// tokens that were generated stay in the sequence and in *result.
absl::Status Generate(Session* session, const GenerateOptions& options, Generation* result);

// Generates for several sessions of one engine, whose tokens share passes; each session has its own
// pace. `options` and `results` have one entry per session. The first error ends the generation of
// all sessions; when a session is cancelled, the others continue.
absl::Status GenerateTogether(std::span<Session* const> sessions,
                              std::span<const GenerateOptions> options,
                              std::span<Generation> results);

}  // namespace trine
