#include "tools/server/openai/requests/prompt_fields.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

PlainPrompt ReadPrompt(const Field& field, int32_t vocab_size) {
  if (field.is_array()) return ReadTokens(field, vocab_size);
  if (!field.is_string()) field.FailType("a string or an array of tokens");
  return field.Text();
}

constexpr size_t kMaxMessages = 1 << 16;
constexpr size_t kMaxParts = 1 << 16;
constexpr size_t kMaxCalls = 1 << 10;

std::string ReadPart(const Field& part) {
  if (!part.is_object()) {
    part.FailType("a part of text");
    return "";
  }
  const std::string type = part["type"].Text("text");
  const bool refusal = type == "refusal";
  if (!refusal && type != "text" && type != "input_text" && type != "output_text") {
    part["type"].Fail(absl::StrCat("is '", type, "': only text is supported"),
                      "unsupported_content");
    return "";
  }
  const Field words = part[refusal ? "refusal" : "text"];
  return words.Require() ? words.Text() : "";
}

// Checks the calls that the assistant made before: templates read their names and arguments.
void CheckCalls(const Field& calls) {
  for (const Field& call : calls.Items(kMaxCalls)) {
    if (!call.is_object()) return call.FailType("an object");
    call["id"].Text();
    if (call["type"].Text("function") != "function")
      call["type"].Fail("is unknown: expected 'function'");
    const Field function = call["function"];
    if (!function.Require() || !function["name"].Require()) return;
    function["name"].Text();
    const Field arguments = function["arguments"];
    if (arguments.present() && !arguments.is_string() && !arguments.is_object()) {
      return arguments.FailType("a string of JSON");
    }
  }
}

Json WithoutNulls(const Json& object) {
  Json out = Json::object();
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    // Names need no check for duplicates: ParseJson refuses them.
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
  std::string text;
  if (content.present()) text = ReadText(content);
  for (const char* const name : {"name", "tool_call_id", "reasoning_content"}) message[name].Text();
  CheckCalls(calls);
  const bool has_calls = role == "assistant" && calls.is_array() && !calls.json().empty();
  if (!content.present() && !has_calls) content.Fail("is missing", "missing_required_parameter");
  if (message.failed()) return Json();
  Json out = WithoutNulls(message.json());
  out["role"] = role;
  // Missing content becomes an empty text, because many templates append it without a check.
  out["content"] = std::move(text);
  // Some templates only check whether tool_calls exists.
  if (!has_calls) out.erase("tool_calls");
  return out;
}

}  // namespace

// Makes no Field for each token: a prompt may have very many, and Fields would cost more than they
// do.
std::vector<int32_t> ReadTokens(const Field& field, int32_t vocab_size) {
  std::vector<int32_t> tokens;
  if (!field.is_array()) {
    field.FailType("an array of tokens");
    return tokens;
  }
  for (const Json& token : field.json()) {
    const bool whole = token.is_number_integer();
    const int64_t value = whole ? token.get<int64_t>() : -1;
    if (value < 0 || value >= vocab_size) {
      field.Fail(absl::StrCat("has ", whole ? absl::StrCat(value) : "something else", " as item ",
                              tokens.size(), ": expected a token from 0 to ", vocab_size - 1));
      return {};
    }
    tokens.push_back(static_cast<int32_t>(value));
  }
  if (tokens.empty()) field.Fail("is empty: expected at least one token");
  return tokens;
}

std::vector<PlainPrompt> ReadPrompts(const Field& field, int32_t vocab_size, size_t at_most) {
  std::vector<PlainPrompt> prompts;
  if (!field.Require()) return prompts;
  if (field.is_string()) {
    prompts.push_back(ReadPrompt(field, vocab_size));
  } else if (!field.is_array()) {
    field.FailType("a string, an array of strings, or tokens");
  } else if (field.json().empty()) {
    field.Fail("is empty: expected at least one text");
  } else if (field.json().front().is_number()) {
    prompts.push_back(ReadTokens(field, vocab_size));
  } else {
    for (const Field& item : field.Items(at_most)) prompts.push_back(ReadPrompt(item, vocab_size));
  }
  return prompts;
}

std::string ReadText(const Field& content) {
  if (!content.is_array()) {
    if (!content.is_string()) content.FailType("a string or an array of parts");
    return content.Text();
  }
  std::string text;
  for (const Field& part : content.Items(kMaxParts)) text += ReadPart(part);
  return text;
}

std::string ReadRole(const Field& field) {
  if (!field.Require()) return "";
  const std::string role = field.Text();
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
  const std::string effort = root["reasoning_effort"].Text();
  if (!effort.empty() && !variables.contains("reasoning_effort")) {
    variables["reasoning_effort"] = effort;
  }
  return variables.empty() ? "" : Dump(variables);
}

}  // namespace trine::server
