#include "tools/server/openai/requests/plain_requests.h"

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/server/openai/requests/field.h"
#include "tools/server/openai/requests/prompt_fields.h"
#include "tools/server/openai/requests/sampling_fields.h"

namespace trine::server {
namespace {

void CheckDimensions(const Field& field, int32_t size) {
  int32_t dimensions = size;
  field.Get(&dimensions, 1, INT32_MAX);
  if (field.present() && dimensions != size) {
    field.Fail(absl::StrCat("is ", dimensions, ": this model's vectors have ", size));
  }
}

constexpr int64_t kMostTime = std::numeric_limits<int64_t>::max();

// Names of fields, separated by spaces: those that a session is made with, and a fork has too.
constexpr char kOfTheSession[] =
    "temperature top_p top_k min_p typical_p repeat_penalty repeat_last_n frequency_penalty "
    "presence_penalty mirostat mirostat_tau mirostat_eta min_keep samplers logit_bias stop "
    "ignore_eos response_format json_schema grammar";

// Those that say how to answer. They belong to .../generate.
constexpr char kOfAnAnswer[] =
    "max_tokens max_completion_tokens n_predict stream stream_options logprobs top_logprobs";

constexpr char kOfItsText[] = "prompt messages";

// Refuses fields that would have no effect, so that clients don't take them for accepted. false
// counts as absent.
void Refuse(const Field& root, const char* names, std::string_view why) {
  for (const absl::string_view name : absl::StrSplit(names, ' ')) {
    const Field field = root[{name.data(), name.size()}];
    if (field.present() && !(field.is_bool() && !field.json().get<bool>())) field.Fail(why);
  }
}

void RefuseOfTheSession(const Field& root) {
  constexpr char kWhy[] = "is the session's own, and set when it is made";
  Refuse(root, kOfTheSession, kWhy);
  Refuse(root, "seed", kWhy);
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

absl::StatusOr<EmbeddingRequest> ParseEmbeddingRequest(std::string_view body,
                                                       const RequestDefaults& defaults) {
  return ReadRequest<EmbeddingRequest>(ParseRequest(body), [&](const Field& root,
                                                               EmbeddingRequest* request) {
    request->inputs =
        ReadPrompts(root["input"], defaults.vocab_size, static_cast<size_t>(defaults.max_inputs));
    for (size_t i = 0; i < request->inputs.size(); ++i) {
      const std::string* const text = std::get_if<std::string>(&request->inputs[i]);
      if (text == nullptr || !text->empty()) continue;
      root["input"].Fail(absl::StrCat("has an empty text as item ", i, ": it has no vector"));
    }
    const std::string format = root["encoding_format"].Text("float");
    request->base64 = format == "base64";
    if (!request->base64 && format != "float") {
      root["encoding_format"].Fail(absl::StrCat("is '", format, "': expected 'float' or 'base64'"));
    }
    CheckDimensions(root["dimensions"], defaults.embedding_size);
    root["user"].Get(&request->user);
    root["model"].Get(&request->model);
  });
}

absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view body) {
  return ReadRequest<TokenizeRequest>(ParseRequest(body), [&](const Field& root,
                                                              TokenizeRequest* request) {
    const Field prompt = root["prompt"];
    const Field text = prompt.present() && !root["content"].present() ? prompt : root["content"];
    if (text.Require()) text.Get(&request->text);
    root["add_special"].Get(&request->add_special);
    root["parse_special"].Get(&request->parse_special);
    root["with_pieces"].Get(&request->with_pieces);
  });
}

absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body,
                                                         int32_t vocab_size) {
  return ReadRequest<DetokenizeRequest>(ParseRequest(body), [&](const Field& root, auto* request) {
    const Field tokens = root["tokens"];
    const bool none = tokens.is_array() && tokens.json().empty();
    if (tokens.Require() && !none) request->tokens = ReadTokens(tokens, vocab_size);
  });
}

absl::StatusOr<GenerationRequest> ParseSessionRequest(std::string_view body,
                                                      const RequestDefaults& defaults) {
  return ReadRequest<GenerationRequest>(ParseRequest(body), [&](const Field& root, auto* request) {
    if (root["messages"].present()) {
      if (root["prompt"].present()) root["prompt"].Fail("and 'messages' both say how it begins");
      ChatPrompt prompt;
      prompt.messages_json = Dump(ReadMessages(root["messages"]));
      prompt.variables_json = ReadTemplateVariables(root);
      request->prompt.chat = std::move(prompt);
    } else if (root["prompt"].present()) {
      request->prompt.plain.push_back(ReadOnePrompt(root["prompt"], defaults));
    } else {
      root["prompt"].Fail("is missing, and so is 'messages': a session begins with one of them",
                          "missing_required_parameter");
    }
    Refuse(root, kOfAnAnswer, "is of an answer: ask .../generate for it");
    ExpectOne(root["n"]);
    ReadSampling(root, defaults, request);
    ReadFormat(root, request);
    request->max_tokens = 0;
  });
}

absl::StatusOr<PlainPrompt> ParseAppendRequest(std::string_view body,
                                               const RequestDefaults& defaults) {
  return ReadRequest<PlainPrompt>(ParseRequest(body), [&](const Field& root, auto* prompt) {
    RefuseOfTheSession(root);
    Refuse(root, kOfAnAnswer, "is of an answer: ask .../generate for it");
    if (root["messages"].present()) {
      root["messages"].Fail("is how a session begins; what is appended is a 'prompt'");
    }
    *prompt = ReadOnePrompt(root["prompt"], defaults);
  });
}

absl::StatusOr<GenerationRequest> ParseContinueRequest(std::string_view body) {
  return ReadRequest<GenerationRequest>(ParseIfAny(body), [&](const Field& root, auto* request) {
    RefuseOfTheSession(root);
    Refuse(root, kOfItsText, "is not for this: append it to the session");
    if (root["top_logprobs"].present()) {
      root["top_logprobs"].Fail("is a chat's: here 'logprobs' is how many");
    }
    if (root["t"].present()) root["t"].Fail("is not for this: regress to it first");
    ExpectOne(root["n"]);
    root["stream"].Get(&request->stream);
    root["stream_options"]["include_usage"].Get(&request->include_usage);
    root["model"].Get(&request->model);
    root["user"].Get(&request->user);
    ReadMaxTokens(root, {"max_completion_tokens", "max_tokens", "n_predict"}, 0, request);
    root["logprobs"].Get(&request->top_logprobs, 0, kMaxLogprobs);
    request->prompt.plain.emplace_back(std::vector<int32_t>());
  });
}

absl::Status ParseCheckpointRequest(std::string_view body) { return ParseIfAny(body).status(); }

absl::StatusOr<int64_t> ParseRegressRequest(std::string_view body) {
  return ReadRequest<int64_t>(ParseRequest(body), [&](const Field& root, auto* t) {
    if (root["t"].Require()) root["t"].Get(t, 0, kMostTime);
  });
}

absl::StatusOr<ForkRequest> ParseForkRequest(std::string_view body,
                                             const RequestDefaults& defaults) {
  return ReadRequest<ForkRequest>(ParseIfAny(body), [&](const Field& root, auto* request) {
    Refuse(root, kOfTheSession, "is the session's own, and its forks have it too");
    Refuse(root, kOfItsText, "is not for this: append it to the forks");
    Refuse(root, kOfAnAnswer, "is of an answer: ask .../generate of a fork for it");
    if (root["t"].present()) {
      root["t"].Fail("is not for this: forks stand where the session does; regress to it first");
    }
    root["n"].Get(&request->n, 1, defaults.max_choices);
    request->seed = ReadSeed(root["seed"]);
    request->any_seed = root["seed"].present() && !request->seed;
  });
}

}  // namespace trine::server
