#include "tools/server/openai/chat_request.h"

#include <string>
#include <utility>

#include "tools/server/openai/field.h"
#include "tools/server/openai/format_fields.h"
#include "tools/server/openai/message_fields.h"
#include "tools/server/openai/sampling_fields.h"
#include "tools/server/openai/tool_fields.h"

namespace trine::server {
namespace {

constexpr int32_t kMaxTopLogprobs = 20;

void ReadLogprobs(const Field& root, GenerationRequest* request) {
  bool logprobs = false;
  int32_t top = 0;
  root["logprobs"].Get(&logprobs);
  root["top_logprobs"].Get(&top, 0, kMaxTopLogprobs);
  if (top > 0 && !logprobs) root["top_logprobs"].Fail("is given, and 'logprobs' is not true");
  if (logprobs) request->top_logprobs = top;
}

// Answers are text.
void CheckModalities(const Field& modalities) {
  for (const Field& item : modalities.Items(16)) {
    if (!item.is_string()) return item.FailType("a string");
    if (item.json() != "text") item.Fail("is not supported: answers are 'text'");
  }
}

}  // namespace

absl::StatusOr<GenerationRequest> ParseChatRequest(std::string_view body,
                                                   const RequestDefaults& defaults) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  GenerationRequest request;
  ChatPrompt prompt;
  prompt.messages_json = Dump(ReadMessages(root["messages"]));
  ReadSampling(root, defaults, &request);
  ReadMaxTokens(root, {"max_completion_tokens", "max_tokens", "n_predict"}, 1, &request);
  ReadLogprobs(root, &request);
  ReadFormat(root, &request);
  ReadTools(root, &request, &prompt);
  prompt.variables_json = ReadTemplateVariables(root);
  CheckModalities(root["modalities"]);
  const bool must_call = request.tool_choice.kind == ToolChoice::Kind::kRequired ||
                         request.tool_choice.kind == ToolChoice::Kind::kNamed;
  if (must_call && request.constraint.kind != ConstraintText::Kind::kNone) {
    root["tool_choice"].Fail("asks for a call: the answer can't have another form too");
  }
  if (must_call && request.ignore_eos) {
    root["ignore_eos"].Fail("is true: a call that is asked for has to end");
  }
  if (!error.ok()) return error;
  request.prompt.chat = std::move(prompt);
  return request;
}

}  // namespace trine::server
