// Texts and tokens, as /v1/completions and /v1/embeddings take them.
#ifndef TRINE_TOOLS_SERVER_OPENAI_PROMPT_FIELDS_H_
#define TRINE_TOOLS_SERVER_OPENAI_PROMPT_FIELDS_H_

#include <cstdint>
#include <vector>

#include "tools/server/openai/field.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

// A string, an array of strings, an array of tokens, or an array of arrays of tokens. At least one,
// and none without tokens; texts may be empty.
std::vector<PlainPrompt> ReadPrompts(const Field& field, int32_t vocab_size, size_t at_most);

// An array of tokens.
std::vector<int32_t> ReadTokens(const Field& field, int32_t vocab_size);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_PROMPT_FIELDS_H_
