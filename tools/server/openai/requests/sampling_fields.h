// Reads the fields of a request that determine how tokens are sampled, when the answer ends, and
// which format it has. Reads OpenAI's fields, and also those of llama.cpp's clients.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "tools/server/openai/requests/field.h"
#include "tools/server/openai/requests/generation_request.h"

namespace trine::server {

// Reads model, user, stream and its options, n, seed, stop, and all of SamplerOptions.
void ReadSampling(const Field& root, const RequestDefaults& defaults, GenerationRequest* request);

// Returns nullopt, which stands for any seed, if the field is absent or -1.
std::optional<uint64_t> ReadSeed(const Field& field);

// Reads the limit from the first of these fields that sets one. -1 means no limit; other negative
// values are wrong.
void ReadMaxTokens(const Field& root, std::initializer_list<const char*> names, int64_t low,
                   GenerationRequest* request);

// Reads the format that a request demands of its answer: response_format, or llama.cpp's grammar or
// json_schema. A request may have at most one of them.
void ReadFormat(const Field& root, GenerationRequest* request);

// Reads one format: text, json_object or json_schema. If `flat` is true, the schema is a member
// next to the type, as in /v1/responses; otherwise it is inside the member json_schema.
void ReadFormatObject(const Field& format, bool flat, ConstraintText* constraint);

}  // namespace trine::server
