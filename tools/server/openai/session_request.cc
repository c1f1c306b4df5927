#include "tools/server/openai/session_request.h"

#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
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
                                         "stop",
                                         "ignore_eos",
                                         "response_format",
                                         "json_schema",
                                         "grammar",
                                         "seed"};  // the last: a fork may have its own

// What says how an answer is to be given: a session is asked for those later.
constexpr const char* kOfAnAnswer[] = {"max_tokens",  "max_completion_tokens", "n_predict",
                                       "stream",      "stream_options",        "logprobs",
                                       "top_logprobs"};

constexpr const char* kOfItsText[] = {"prompt", "messages"};

// Nobody should take what is passed over for what was heeded. What is false asks for nothing.
void Refuse(const Field& root, std::span<const char* const> names, std::string_view why) {
  for (const char* const name : names) {
    const Field field = root[name];
    if (field.present() && !(field.is_bool() && !field.json().get<bool>())) field.Fail(why);
  }
}

void ExpectOne(const Field& n) {
  if (n.present() && n.json() != 1) n.Fail("is not 1: a session has one text, and can be forked");
}

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
  } else if (root["prompt"].present()) {
    request.prompt.plain.push_back(ReadOnePrompt(root["prompt"], defaults));
  } else {
    root["prompt"].Fail("is missing, and so is 'messages': a session begins with one of them",
                        "missing_required_parameter");
  }
  Refuse(root, kOfAnAnswer, "is of an answer: ask .../generate for it");
  ExpectOne(root["n"]);
  ReadSampling(root, defaults, &request);
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
  Refuse(root, kOfTheSession, "is the session's own, and set when it is made");
  Refuse(root, kOfAnAnswer, "is of an answer: ask .../generate for it");
  if (root["messages"].present()) {
    root["messages"].Fail("is how a session begins; what is appended is a 'prompt'");
  }
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
  Refuse(root, kOfTheSession, "is the session's own, and set when it is made");
  Refuse(root, kOfItsText, "is not for this: append it to the session");
  if (root["top_logprobs"].present()) {
    root["top_logprobs"].Fail("is a chat's: here 'logprobs' is how many");
  }
  if (root["t"].present()) root["t"].Fail("is not for this: regress to it first");
  ExpectOne(root["n"]);
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
  Refuse(root, std::span(kOfTheSession).first(std::size(kOfTheSession) - 1),
         "is the session's own, and its forks have it too");
  Refuse(root, kOfItsText, "is not for this: append it to the forks");
  Refuse(root, kOfAnAnswer, "is of an answer: ask .../generate of a fork for it");
  if (root["t"].present()) {
    root["t"].Fail("is not for this: forks stand where the session does; regress to it first");
  }
  root["n"].Get(&request.n, 1, defaults.max_choices);
  request.seed = ReadSeed(root["seed"]);
  request.any_seed = root["seed"].present() && !request.seed;
  if (!error.ok()) return error;
  return request;
}

}  // namespace trine::server
