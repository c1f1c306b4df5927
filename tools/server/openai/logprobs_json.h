// Log-probabilities in the two shapes the API has for them.
#ifndef TRINE_TOOLS_SERVER_OPENAI_LOGPROBS_JSON_H_
#define TRINE_TOOLS_SERVER_OPENAI_LOGPROBS_JSON_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tools/server/openai/answer_writer.h"
#include "tools/server/openai/json.h"

namespace trine::server {

// Chat: [{"token", "logprob", "bytes", "top_logprobs": [...]}, ...]
Json ChatLogprobs(std::span<const TokenInfo> tokens);

// Completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. `offset`, in
// characters, is where the first token's text begins, and moves on. A token that is no whole
// characters reads "bytes:\xe2\x80". The best have the token that came among them: one more where
// it is none of them.
Json CompletionLogprobs(std::span<const TokenInfo> tokens, int64_t* offset);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_LOGPROBS_JSON_H_
