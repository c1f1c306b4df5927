// Generation: evaluate, sample, detokenise, watch for stop strings, again; one session or several
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
#include "runtime/rerank.h"
#include "runtime/session.h"

namespace trine {

enum class FinishReason {
  kNone,
  kLength,
  kEndOfText,
  kStopString,
  kContextFull,
  kCancelled,
  kCaller  // on_text said so
};
const char* FinishReasonName(FinishReason reason);

// What one round of generation gave.
struct Generation {
  std::string text;
  std::vector<int32_t> tokens;         // an end-of-generation token is not among them
  std::vector<SampleResult> logprobs;  // one per token, where they were asked for
  int64_t n_tokens = 0;                // as many, collected or not
  FinishReason finish = FinishReason::kNone;
  int64_t context_shifts = 0;
  bool complete = true;       // with a constraint: the answer is a whole text of it, not a cut one
  int64_t prompt_tokens = 0;  // that the first one was sampled behind, and that were new
  int64_t cached_tokens = 0;  // of those, that others of the session's space had read
  double prompt_ms = 0;
  double generate_ms = 0;
  double sample_ms = 0;  // of both: choosing tokens, and telling of them
  // With reranking: tokens that candidates were tried for, how many, and how long that took. The
  // candidate that is chosen has then been read.
  int64_t reranked_tokens = 0;
  int64_t rerank_candidates = 0;
  double rerank_ms = 0;  // of generate_ms
};

struct GenerateOptions {
  int64_t max_tokens = 256;  // 0: the prompt is read; -1: until the context is full
  // With each token its log-probability and those of the n best; -1: none.
  int32_t logprobs = -1;
  // Text, tokens and log-probabilities are kept in the result; false where the callbacks are
  // enough.
  bool collect = true;
  // Where the context is full: the first `keep` tokens stay, half of the others go, and what is
  // left is read again at its new place (docs/numerics.md, "Context shift"). Without it the
  // generation ends there.
  bool context_shift = false;
  int64_t keep = 0;  // of what is there at the beginning, and at least its BOS; -1: all of it
  // Tokens are chosen by what a head says of the text with them; null: by their logits alone. Of
  // the session's engine.
  std::shared_ptr<const Rerank> rerank = nullptr;
  // Another round follows: a character or stop string that is half complete at the end of this one
  // is held back for it, rather than shown as it is.
  bool more_follows = false;
  // A token as it is chosen, before its text, with what `logprobs` asks for. False ends the
  // generation.
  std::function<bool(const SampleResult& token)> on_token;
  // It is told of the token that ended the text too, which is none of the answer's.
  bool tell_end = false;
  // A piece of text that is final, whole UTF-8 characters. False ends the generation.
  std::function<bool(std::string_view text)> on_text;
  std::function<void(int64_t done, int64_t total)> on_prompt;  // tokens of the prompt read
};

// Most log-probabilities with a token.
inline constexpr int32_t kMaxLogprobs = 1024;

// What Generate would refuse before it does anything: FAILED_PRECONDITION where nothing has been
// appended, INVALID_ARGUMENT for numbers that make no sense.
absl::Status CheckGenerate(const Session& session, const GenerateOptions& options);

// Goes on from what has been appended. What was generated before an error stays in the sequence and
// in `result`.
absl::Status Generate(Session* session, const GenerateOptions& options, Generation* result);

// The same for several sessions of one engine in step: their tokens share passes. `options` and
// `results` have one entry per session. The first error ends all; a session that is cancelled
// leaves the others to go on.
absl::Status GenerateTogether(std::span<Session* const> sessions,
                              std::span<const GenerateOptions> options,
                              std::span<Generation> results);

}  // namespace trine

#endif  // TRINE_RUNTIME_GENERATE_H_
