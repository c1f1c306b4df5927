#include "tools/server/openai/message_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

constexpr size_t kMaxMessages = 1 << 16;
constexpr size_t kMaxParts = 1 << 16;
constexpr size_t kMaxCalls = 1 << 10;

std::string ReadPart(const Field& part) {
  std::string type = "text", text;
  if (!part.is_object()) {
    part.FailType("a part of text");
    return text;
  }
  part["type"].Get(&type);
  const bool refusal = type == "refusal";
  if (!refusal && type != "text" && type != "input_text" && type != "output_text") {
    part["type"].Fail(absl::StrCat("is '", type, "': only text is supported"),
                      "unsupported_content");
    return text;
  }
  const Field words = part[refusal ? "refusal" : "text"];
  if (words.Require()) words.Get(&text);
  return text;
}

// Calls that the assistant made before. A template reads their names and arguments.
void CheckCalls(const Field& calls) {
  for (const Field& call : calls.Items(kMaxCalls)) {
    if (!call.is_object()) return call.FailType("an object");
    std::string ignored, type = "function";
    call["id"].Get(&ignored);
    call["type"].Get(&type);
    if (type != "function") call["type"].Fail("is unknown: expected 'function'");
    const Field function = call["function"];
    if (!function.Require() || !function["name"].Require()) return;
    function["name"].Get(&ignored);
    const Field arguments = function["arguments"];
    if (arguments.present() && !arguments.is_string() && !arguments.is_object()) {
      return arguments.FailType("a string of JSON");
    }
  }
}

Json WithoutNulls(const Json& object) {
  Json out = Json::object();
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    // The names are known to differ.
    if (!value.is_null()) out.get_ref<Json::object_t&>().emplace_back(name, value);
  }
  return out;
}

Json ReadMessage(const Field& message) {
  if (!message.is_object()) {
    message.FailType("a message");
    return Json();
  }
  const std::string role = ReadRole(message["role"]);
  const Field content = message["content"], calls = message["tool_calls"];
  std::string text, ignored;
  if (content.present()) text = ReadText(content);
  for (const char* const name : {"name", "tool_call_id", "reasoning_content"}) {
    message[name].Get(&ignored);
  }
  CheckCalls(calls);
  const bool has_calls = role == "assistant" && calls.is_array() && !calls.json().empty();
  if (!content.present() && !has_calls) {
    content.Fail("is missing", "missing_required_parameter");
  }
  if (message.failed()) return Json();
  Json out = WithoutNulls(message.json());
  out["role"] = role;
  // Nothing is an empty text: many templates add it to others without asking.
  out["content"] = std::move(text);
  // Some templates ask only whether they are there.
  if (!has_calls) out.erase("tool_calls");
  return out;
}

}  // namespace

std::string ReadText(const Field& content) {
  std::string text;
  if (content.is_array()) {
    for (const Field& part : content.Items(kMaxParts)) text += ReadPart(part);
  } else if (content.is_string()) {
    content.Get(&text);
  } else {
    content.FailType("a string or an array of parts");
  }
  return text;
}

std::string ReadRole(const Field& field) {
  std::string role;
  if (!field.Require()) return role;
  field.Get(&role);
  if (role == "developer") return "system";
  for (const char* const known : {"system", "user", "assistant", "tool"}) {
    if (role == known) return role;
  }
  field.Fail(absl::StrCat("is '", role,
                          "': expected 'system', 'developer', 'user', 'assistant' or 'tool'"));
  return "";
}

Json ReadMessages(const Field& messages) {
  Json out = Json::array();
  if (!messages.Require()) return out;
  for (const Field& message : messages.Items(kMaxMessages)) {
    out.push_back(ReadMessage(message));
    if (messages.failed()) return out;
  }
  if (out.empty()) messages.Fail("is empty: expected at least one message");
  return out;
}

std::string ReadTemplateVariables(const Field& root) {
  const Field kwargs = root["chat_template_kwargs"];
  Json variables = Json::object();
  if (kwargs.ExpectObject() && kwargs.present()) variables = kwargs.json();
  std::string effort;
  root["reasoning_effort"].Get(&effort);
  if (!effort.empty() && !variables.contains("reasoning_effort")) {
    variables["reasoning_effort"] = effort;
  }
  return variables.empty() ? "" : Dump(variables);
}

}  // namespace trine::server
