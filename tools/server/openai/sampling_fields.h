// The fields of a request that say how its tokens are chosen and when it ends: OpenAI's, and those
// llama.cpp's clients send beside them.
#ifndef TRINE_TOOLS_SERVER_OPENAI_SAMPLING_FIELDS_H_
#define TRINE_TOOLS_SERVER_OPENAI_SAMPLING_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "tools/server/openai/field.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

// model, user, stream and its options, n, seed, stop, and everything of SamplerOptions.
void ReadSampling(const Field& root, const RequestDefaults& defaults, GenerationRequest* request);

// None where it is absent, or -1: any.
std::optional<uint64_t> ReadSeed(const Field& field);

// The first of these fields that is there. -1, and only that of what is negative, is no limit.
void ReadMaxTokens(const Field& root, std::initializer_list<const char*> names, int64_t low,
                   GenerationRequest* request);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_SAMPLING_FIELDS_H_
