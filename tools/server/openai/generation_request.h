// What every request that generates comes to, whichever endpoint it came by.
#ifndef TRINE_TOOLS_SERVER_OPENAI_GENERATION_REQUEST_H_
#define TRINE_TOOLS_SERVER_OPENAI_GENERATION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/sampling/sampler_options.h"

namespace trine::server {

// A text, or tokens as they are.
using PlainPrompt = std::variant<std::string, std::vector<int32_t>>;

struct ChatPrompt {
  std::string messages_json;   // an array, for ParseMessages
  std::string tools_json;      // an array, for ParseTools; "": none are told of
  std::string variables_json;  // an object, for ParseVariables; "": none
};

// Either: messages, or one or several texts that are continued as they are.
struct Prompt {
  std::optional<ChatPrompt> chat;
  std::vector<PlainPrompt> plain;
};

struct ConstraintText {
  enum class Kind { kNone, kJsonSchema, kGbnf };
  Kind kind = Kind::kNone;
  std::string text;
  std::string param;  // the field it came from, for WithParam
};

struct Tool {
  std::string name;
  std::string parameters_json;  // a schema of an object
};

struct ToolChoice {
  enum class Kind { kNone, kAuto, kRequired, kNamed };
  Kind kind = Kind::kNone;
  std::string name;  // of kNamed: one of the tools
};

struct GenerationRequest {
  Prompt prompt;
  SamplerOptions sampler;        // its seed is `seed`, where there is one
  std::optional<uint64_t> seed;  // absent: the server draws one
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
  std::string instructions;      // of /v1/responses, to be repeated in its answer
  std::string metadata_json;     // likewise: an object, or ""
  std::string text_format_json;  // likewise
};

// What a parser has to know of the server.
struct RequestDefaults {
  SamplerOptions sampler;
  int32_t vocab_size = kMaxVocabSize;  // token ids are below
  int32_t max_choices = 128;           // prompts times n
  int32_t max_inputs = 2048;           // texts of one request for embeddings
  int32_t embedding_size = 0;          // 0: not known
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_GENERATION_REQUEST_H_
