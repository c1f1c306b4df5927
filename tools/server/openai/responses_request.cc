#include "tools/server/openai/responses_request.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/field.h"
#include "tools/server/openai/format_fields.h"
#include "tools/server/openai/message_fields.h"
#include "tools/server/openai/sampling_fields.h"

namespace trine::server {
namespace {

constexpr size_t kMaxItems = 1 << 16;

Json Message(std::string role, std::string content) {
  return Json{{"role", std::move(role)}, {"content", std::move(content)}};
}

Json ReadItem(const Field& item) {
  if (!item.is_object()) {
    item.FailType("an item");
    return Json();
  }
  std::string type = "message";
  item["type"].Get(&type);
  if (type != "message") {
    item["type"].Fail(absl::StrCat("is '", type, "': only messages are supported"));
    return Json();
  }
  std::string role = ReadRole(item["role"]);
  if (role == "tool") item["role"].Fail("is 'tool': tools are not supported here");
  if (!item["content"].Require()) return Json();
  return Message(std::move(role), ReadText(item["content"]));
}

Json ReadInput(const Field& input, const std::string& instructions) {
  Json messages = Json::array();
  if (!instructions.empty()) messages.push_back(Message("system", instructions));
  if (!input.Require()) return messages;
  if (input.is_string()) {
    messages.push_back(Message("user", input.json().get<std::string>()));
  } else if (input.is_array()) {
    for (const Field& item : input.Items(kMaxItems)) messages.push_back(ReadItem(item));
    if (input.json().empty()) input.Fail("is empty: expected at least one item");
  } else {
    input.FailType("a string or an array of items");
  }
  return messages;
}

// Nothing is kept between requests, and calls are for /v1/chat/completions.
void CheckUnsupported(const Field& root) {
  for (const char* const name : {"previous_response_id", "conversation", "prompt"}) {
    if (root[name].present()) root[name].Fail("is not supported: answers are not kept");
  }
  if (!root["tools"].Items(1 << 10).empty()) {
    root["tools"].Fail("is not supported here: use /v1/chat/completions");
  }
  bool background = false;
  root["background"].Get(&background);
  if (background) root["background"].Fail("is not supported");
}

}  // namespace

absl::StatusOr<GenerationRequest> ParseResponsesRequest(std::string_view body,
                                                        const RequestDefaults& defaults) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  GenerationRequest request;
  ChatPrompt prompt;
  root["instructions"].Get(&request.instructions);
  prompt.messages_json = Dump(ReadInput(root["input"], request.instructions));
  ReadSampling(root, defaults, &request);
  ReadMaxTokens(root, {"max_output_tokens"}, 1, &request);
  const Field format = root["text"]["format"];
  ReadFormatObject(format, true, &request.constraint);
  if (format.is_object()) request.text_format_json = Dump(format.json());
  if (root["metadata"].ExpectObject() && root["metadata"].present()) {
    request.metadata_json = Dump(root["metadata"].json());
  }
  CheckUnsupported(root);
  if (request.n != 1) root["n"].Fail("is not supported here: there is one answer");
  if (request.constraint.kind != ConstraintText::Kind::kNone && request.ignore_eos) {
    root["ignore_eos"].Fail("is true: an answer of a given form has to end");
  }
  if (!error.ok()) return error;
  request.prompt.chat = std::move(prompt);
  return request;
}

}  // namespace trine::server
