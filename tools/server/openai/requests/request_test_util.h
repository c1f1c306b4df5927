// Helpers of the requests' tests: a full request for every endpoint, and the field that an error
// names.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/json.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/openai/requests/plain_requests.h"

namespace trine::server {

inline RequestDefaults TestDefaults() {
  RequestDefaults defaults;
  defaults.sampler.temp = 0.5f;
  defaults.vocab_size = 1000;
  defaults.max_choices = 8;
  defaults.max_inputs = 4;
  defaults.embedding_size = 16;
  return defaults;
}

// Returns the error as an object of "message", "type", "param" and "code".
inline Json ErrorOf(const absl::Status& status) { return Json::parse(ErrorBody(status))["error"]; }

inline std::string ParamOf(const absl::Status& status) {
  const Json param = ErrorOf(status)["param"];
  return param.is_string() ? param.get<std::string>() : "";
}

struct Endpoint {
  const char* name;
  absl::Status (*parse)(std::string_view body);
  const char* full;            // a request with every known field
  bool needs_nothing = false;  // all fields are optional
};

inline constexpr char kFullChat[] = R"({
  "model": "m", "user": "u", "temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0.1,
  "typical_p": 0.8, "repeat_last_n": 32, "repeat_penalty": 1.1, "frequency_penalty": 0.2,
  "presence_penalty": 0.3, "mirostat": 2, "mirostat_tau": 4, "mirostat_eta": 0.2, "min_keep": 1,
  "samplers": ["top_k", "temperature"], "logit_bias": {"12": -5, "13": false}, "seed": 7,
  "stop": ["END", "x"], "n": 2, "max_tokens": 5, "max_completion_tokens": 6, "n_predict": 8,
  "logprobs": true, "top_logprobs": 3, "ignore_eos": false, "stream": true,
  "stream_options": {"include_usage": true}, "parallel_tool_calls": false,
  "response_format": {"type": "text"}, "chat_template_kwargs": {"enable_thinking": false},
  "reasoning_effort": "low", "modalities": ["text"], "cache_prompt": true, "unknown": [1, {}],
  "messages": [
    {"role": "developer", "content": "Be terse."},
    {"role": "user", "content": [{"type": "text", "text": "Wie"}, {"type": "input_text", "text": " geht's?"}],
     "name": "Ann"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"}],
  "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "strict": true,
    "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}}],
  "tool_choice": {"type": "function", "function": {"name": "look"}}
})";

inline constexpr char kFullCompletion[] = R"({
  "model": "m", "user": "u", "prompt": ["Once", "Twice"], "temperature": 0, "top_p": 1, "n": 2,
  "best_of": 2, "echo": true, "logprobs": 2, "max_tokens": 0, "stop": "END", "suffix": "",
  "stream": false, "seed": -1, "logit_bias": [[12, -5], [13, false]], "grammar": "root ::= \"a\"",
  "stream_options": {"include_usage": false}
})";

inline constexpr char kFullResponses[] = R"({
  "model": "m", "user": "u", "instructions": "Be terse.", "max_output_tokens": 40, "temperature": 1,
  "top_p": 0.5, "stream": true, "store": true, "metadata": {"a": "b"}, "tools": [], "background": false,
  "text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "object"}}},
  "input": [{"role": "user", "content": "Hi"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes?"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "Go on."}]}]
})";

inline constexpr char kFullEmbedding[] = R"({
  "model": "m", "user": "u", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 16
})";

inline constexpr char kFullTokenize[] = R"({
  "content": "a b", "add_special": true, "parse_special": false, "with_pieces": true
})";

inline constexpr char kFullDetokenize[] = R"({"tokens": [1, 2, 999]})";

inline constexpr char kFullSession[] = R"({
  "model": "m", "user": "u", "prompt": "Once", "temperature": 0.7, "top_p": 0.9, "top_k": 20,
  "min_p": 0.1, "typical_p": 0.8, "repeat_last_n": 32, "repeat_penalty": 1.1,
  "frequency_penalty": 0.2, "presence_penalty": 0.3, "mirostat": 2, "mirostat_tau": 4,
  "mirostat_eta": 0.2, "min_keep": 1, "samplers": ["top_k", "temperature"],
  "logit_bias": {"12": -5, "13": false}, "seed": 7, "stop": ["END", "x"], "ignore_eos": false,
  "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}, "n": 1
})";

inline constexpr char kFullSessionChat[] = R"({
  "messages": [{"role": "user", "content": "Hi"}], "chat_template_kwargs": {"enable_thinking": false},
  "reasoning_effort": "low", "ignore_eos": true
})";

inline constexpr char kFullAppend[] = R"({"prompt": [1, 2, 999]})";

inline constexpr char kFullContinue[] = R"({
  "model": "m", "user": "u", "n": 1, "max_tokens": 5, "max_completion_tokens": 6, "n_predict": 8,
  "stream": true, "stream_options": {"include_usage": true}, "logprobs": 3
})";

inline constexpr char kFullRegress[] = R"({"t": 3})";

inline constexpr char kFullFork[] = R"({"n": 4, "seed": 7})";

inline const std::vector<Endpoint>& Endpoints() {
  static const auto& endpoints = *new std::vector<Endpoint>{
      {"chat", [](std::string_view b) { return ParseChatRequest(b, TestDefaults()).status(); },
       kFullChat},
      {"completion",
       [](std::string_view b) { return ParseCompletionRequest(b, TestDefaults()).status(); },
       kFullCompletion},
      {"responses",
       [](std::string_view b) { return ParseResponsesRequest(b, TestDefaults()).status(); },
       kFullResponses},
      {"embedding",
       [](std::string_view b) { return ParseEmbeddingRequest(b, TestDefaults()).status(); },
       kFullEmbedding},
      {"tokenize", [](std::string_view b) { return ParseTokenizeRequest(b).status(); },
       kFullTokenize},
      {"detokenize", [](std::string_view b) { return ParseDetokenizeRequest(b, 1000).status(); },
       kFullDetokenize},
      {"session",
       [](std::string_view b) { return ParseSessionRequest(b, TestDefaults()).status(); },
       kFullSession},
      {"session chat",
       [](std::string_view b) { return ParseSessionRequest(b, TestDefaults()).status(); },
       kFullSessionChat},
      {"append", [](std::string_view b) { return ParseAppendRequest(b, TestDefaults()).status(); },
       kFullAppend},
      {"continue", [](std::string_view b) { return ParseContinueRequest(b).status(); },
       kFullContinue, true},
      {"checkpoint", [](std::string_view b) { return ParseCheckpointRequest(b); },
       R"({"unknown": 1})", true},
      {"regress", [](std::string_view b) { return ParseRegressRequest(b).status(); }, kFullRegress},
      {"fork", [](std::string_view b) { return ParseForkRequest(b, TestDefaults()).status(); },
       kFullFork, true}};
  return endpoints;
}

// Converts a JSON pointer such as "/messages/0/content" to "messages[0].content".
inline std::string PathOf(const std::string& pointer) {
  std::string path;
  for (const std::string& step : std::vector<std::string>(absl::StrSplit(pointer, '/'))) {
    if (step.empty()) continue;
    const bool index = std::all_of(step.begin(), step.end(), absl::ascii_isdigit);
    // A token in logit_bias is a member's name, though it looks like an index.
    if (index && path != "logit_bias") {
      absl::StrAppend(&path, "[", step, "]");
    } else {
      absl::StrAppend(&path, path.empty() ? "" : ".", step);
    }
  }
  return path;
}

inline const Endpoint& EndpointOf(std::string_view name) {
  return *std::find_if(Endpoints().begin(), Endpoints().end(),
                       [name](const Endpoint& endpoint) { return endpoint.name == name; });
}

}  // namespace trine::server
