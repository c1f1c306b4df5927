// A request that generates text. It has the same form for all endpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/sampling/sampler_options.h"

namespace trine::server {

// The most log-probabilities of other tokens that a request may ask for with each token.
inline constexpr int32_t kMaxLogprobs = 20;

// A text, or its tokens.
using PlainPrompt = std::variant<std::string, std::vector<int32_t>>;

struct ChatPrompt {
  std::string messages_json;   // an array, for ParseMessages
  std::string tools_json;      // an array, for ParseTools; "": the template gets no tools
  std::string variables_json;  // an object, for ParseVariables; "": none
};

// Either a chat, or one or more texts to be continued as they are.
struct Prompt {
  std::optional<ChatPrompt> chat;
  std::vector<PlainPrompt> plain;
};

struct ConstraintText {
  enum class Kind { kNone, kJsonSchema, kGbnf };
  Kind kind = Kind::kNone;
  std::string text;
  std::string param;  // the field that it came from, for WithParam
};

struct Tool {
  std::string name;
  std::string parameters_json;  // a schema of an object
};

struct ToolChoice {
  enum class Kind { kNone, kAuto, kRequired, kNamed };
  Kind kind = Kind::kNone;
  std::string name;  // for kNamed: one of the tools
};

struct GenerationRequest {
  Prompt prompt;
  SamplerOptions sampler;        // includes `seed`, if there is one
  std::optional<uint64_t> seed;  // nullopt: the server draws a seed
  std::vector<std::string> stop;
  std::optional<int64_t> max_tokens;
  int32_t n = 1;              // choices for each prompt
  int32_t top_logprobs = -1;  // -1: none
  bool echo = false;
  bool ignore_eos = false;
  bool stream = false;
  bool include_usage = false;
  ConstraintText constraint;
  std::vector<Tool> tools;
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;
  std::string user;
  std::string model;
  // Fields of /v1/responses that its answer repeats. The last two are JSON objects, or "".
  std::string instructions;
  std::string metadata_json;
  std::string text_format_json;
};

// The defaults and limits of the server that a parser needs.
struct RequestDefaults {
  SamplerOptions sampler;
  int32_t vocab_size = kMaxVocabSize;  // token ids must be below it
  int32_t max_choices = 128;           // the most prompts times n
  int32_t max_inputs = 2048;           // the most texts of a request for embeddings
  int32_t embedding_size = 0;          // 0: unknown
};

// Read the requests of POST /v1/chat/completions, /v1/completions and /v1/responses. Return
// INVALID_ARGUMENT for a body that is not a JSON object, and for a wrong field; the error has the
// path of the first wrong field. Ignore unknown fields.
absl::StatusOr<GenerationRequest> ParseChatRequest(std::string_view body,
                                                   const RequestDefaults& defaults);
absl::StatusOr<GenerationRequest> ParseCompletionRequest(std::string_view body,
                                                         const RequestDefaults& defaults);
absl::StatusOr<GenerationRequest> ParseResponsesRequest(std::string_view body,
                                                        const RequestDefaults& defaults);

}  // namespace trine::server
