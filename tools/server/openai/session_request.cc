#include "tools/server/openai/session_request.h"

#include <limits>
#include <string>
#include <utility>

#include "tools/server/openai/field.h"
#include "tools/server/openai/format_fields.h"
#include "tools/server/openai/message_fields.h"
#include "tools/server/openai/prompt_fields.h"
#include "tools/server/openai/sampling_fields.h"

namespace trine::server {
namespace {

constexpr int32_t kMaxLogprobs = 20;
constexpr int64_t kMostTime = std::numeric_limits<int64_t>::max();

// What a session is made with.
constexpr const char* kOfTheSession[] = {"temperature",
                                         "top_p",
                                         "top_k",
                                         "min_p",
                                         "typical_p",
                                         "repeat_penalty",
                                         "repeat_last_n",
                                         "frequency_penalty",
                                         "presence_penalty",
                                         "mirostat",
                                         "mirostat_tau",
                                         "mirostat_eta",
                                         "min_keep",
                                         "samplers",
                                         "logit_bias",
                                         "seed",
                                         "stop",
                                         "ignore_eos",
                                         "response_format",
                                         "json_schema",
                                         "grammar"};

absl::StatusOr<Json> ParseIfAny(std::string_view body) {
  if (body.empty()) return Json(Json::object());
  return ParseRequest(body);
}

PlainPrompt ReadOnePrompt(const Field& field, const RequestDefaults& defaults) {
  std::vector<PlainPrompt> prompts = ReadPrompts(field, defaults.vocab_size, 1);
  return prompts.empty() ? PlainPrompt() : std::move(prompts[0]);
}

}  // namespace

absl::StatusOr<GenerationRequest> ParseSessionRequest(std::string_view body,
                                                      const RequestDefaults& defaults) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  GenerationRequest request;
  if (root["messages"].present()) {
    if (root["prompt"].present()) root["prompt"].Fail("and 'messages' both say how it begins");
    ChatPrompt prompt;
    prompt.messages_json = Dump(ReadMessages(root["messages"]));
    prompt.variables_json = ReadTemplateVariables(root);
    request.prompt.chat = std::move(prompt);
  } else {
    request.prompt.plain.push_back(ReadOnePrompt(root["prompt"], defaults));
  }
  ReadSampling(root, defaults, &request);
  if (request.n != 1) root["n"].Fail("is not 1: a session has one text, and can be forked");
  ReadFormat(root, &request);
  request.max_tokens = 0;
  if (!error.ok()) return error;
  return request;
}

absl::StatusOr<PlainPrompt> ParseAppendRequest(std::string_view body,
                                               const RequestDefaults& defaults) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  PlainPrompt prompt = ReadOnePrompt(root["prompt"], defaults);
  if (!error.ok()) return error;
  return prompt;
}

absl::StatusOr<GenerationRequest> ParseContinueRequest(std::string_view body) {
  absl::StatusOr<Json> document = ParseIfAny(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  GenerationRequest request;
  for (const char* const name : kOfTheSession) {
    if (root[name].present()) root[name].Fail("is the session's own, and set when it is made");
  }
  for (const char* const name : {"prompt", "messages"}) {
    if (root[name].present()) root[name].Fail("is not for this: append it to the session");
  }
  root["n"].Get(&request.n, 1, 1);
  root["stream"].Get(&request.stream);
  root["stream_options"]["include_usage"].Get(&request.include_usage);
  root["model"].Get(&request.model);
  root["user"].Get(&request.user);
  ReadMaxTokens(root, {"max_completion_tokens", "max_tokens", "n_predict"}, 0, &request);
  root["logprobs"].Get(&request.top_logprobs, 0, kMaxLogprobs);
  if (!error.ok()) return error;
  request.prompt.plain.emplace_back(std::vector<int32_t>());
  return request;
}

absl::Status ParseCheckpointRequest(std::string_view body) { return ParseIfAny(body).status(); }

absl::StatusOr<int64_t> ParseRegressRequest(std::string_view body) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  int64_t t = 0;
  if (root["t"].Require()) root["t"].Get(&t, 0, kMostTime);
  if (!error.ok()) return error;
  return t;
}

absl::StatusOr<ForkRequest> ParseForkRequest(std::string_view body,
                                             const RequestDefaults& defaults) {
  absl::StatusOr<Json> document = ParseIfAny(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  ForkRequest request;
  root["n"].Get(&request.n, 1, defaults.max_choices);
  request.seed = ReadSeed(root["seed"]);
  if (!error.ok()) return error;
  return request;
}

}  // namespace trine::server
