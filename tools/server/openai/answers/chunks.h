// Writes the JSON of chat and text completions: chunks of a stream, whole bodies, usage, and
// log-probabilities.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/json.h"

namespace trine::server {

Json UsageJson(const Usage& usage);
const char* FinishReasonText(AnswerEnd end);  // "stop" or "length"

// Formats the chunks of one streamed answer. They all begin with the same members.
class Chunks {
 public:
  // `object` is the member of that name. `with_usage`: the request asked for usage. Then every
  // chunk says "usage": null, except the last one, which OfUsage makes.
  Chunks(const AnswerHead& head, const char* object, bool with_usage);

  std::string Of(const Json& choice) const;       // a chunk with one choice
  std::string OfUsage(const Usage& usage) const;  // a chunk without choices

 private:
  std::string begin_;
  std::string end_;
};

// Returns the body of an answer with all its choices.
std::string WholeAnswer(const AnswerHead& head, const char* object, Json choices,
                        const Usage& usage);

// Returns the log-probabilities as chat completions have them: [{"token", "logprob", "bytes",
// "top_logprobs": [...]}, ...]
Json ChatLogprobs(std::span<const TokenInfo> tokens);

// Returns the log-probabilities as text completions have them: {"tokens", "token_logprobs",
// "top_logprobs", "text_offset"}. *offset is the position in characters at which the first token's
// text begins; adds the length of all tokens to it. Writes a token whose text is not whole
// characters as "bytes:\xe2\x80". "top_logprobs" always has the token that was sampled, as an
// additional entry if need be.
Json CompletionLogprobs(std::span<const TokenInfo> tokens, int64_t* offset);

}  // namespace trine::server
