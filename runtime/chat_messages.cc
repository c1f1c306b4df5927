#include "runtime/chat_messages.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/template/json_value.h"

namespace trine {
namespace {

using jinja::Dict;
using jinja::Given;
using jinja::Text;
using jinja::Value;
using Kind = Value::Kind;

const Value* FindString(const Dict& dict, std::string_view key) {
  const Value* value = dict.Find(key);
  return value != nullptr && value->is(Kind::kString) ? value : nullptr;
}

// [{"type": "text", "text": ...}, ...] as one string.
absl::StatusOr<Value> JoinParts(const std::vector<Value>& parts) {
  Text text;
  for (const Value& part : parts) {
    const Value* words = part.is(Kind::kDict) ? FindString(part.dict(), "text") : nullptr;
    if (words == nullptr) return absl::InvalidArgumentError("has a part that is not text");
    text.Append(words->text());
  }
  return Value::String(std::move(text));
}

// {"function": {"name": ..., "arguments": "{...}"}, ...} with its arguments read. What is no JSON
// object stays as it is: a model may have written it.
Value ReadArguments(const Value& call) {
  const Value* function = call.is(Kind::kDict) ? call.dict().Find("function") : nullptr;
  if (function == nullptr || !function->is(Kind::kDict)) return call;
  const Value* arguments = FindString(function->dict(), "arguments");
  if (arguments == nullptr) return call;
  const auto read = jinja::ParseJson(arguments->text().bytes(), "arguments");
  if (!read.ok() || !read->is(Kind::kDict)) return call;
  Dict with_arguments = function->dict();
  with_arguments.Set(Text("arguments"), *read);
  Dict out = call.dict();
  out.Set(Text("function"), Given::OfDict(std::move(with_arguments)));
  return Given::OfDict(std::move(out));
}

absl::StatusOr<Value> NormalizeMessage(const Value& message) {
  if (!message.is(Kind::kDict)) return absl::InvalidArgumentError("is no object");
  if (FindString(message.dict(), "role") == nullptr) {
    return absl::InvalidArgumentError("has no role");
  }
  Dict out = message.dict();
  const Value* content = out.Find("content");
  if (content == nullptr) {
    out.Set(Text("content"), Value::None());
  } else if (content->is(Kind::kList)) {
    auto joined = JoinParts(content->list());
    if (!joined.ok()) return joined;
    out.Set(Text("content"), *std::move(joined));
  } else if (!content->is(Kind::kString) && !content->none()) {
    return absl::InvalidArgumentError("has content that is not text");
  }
  const Value* calls = out.Find("tool_calls");
  if (calls != nullptr && calls->is(Kind::kList)) {
    std::vector<Value> read;
    for (const Value& call : calls->list()) read.push_back(ReadArguments(call));
    out.Set(Text("tool_calls"), Given::OfList(std::move(read)));
  }
  Value value = Given::OfDict(std::move(out));
  // Arguments nested in arguments: each was within the limit, together they need not be.
  if (value.height() >= jinja::kMaxHeight) return absl::InvalidArgumentError("is nested too deep");
  return value;
}

}  // namespace

Value ChatMessage(std::string_view role, std::string_view content) {
  Dict message;
  message.Set(Text("role"), Value::String(role, true));
  message.Set(Text("content"), Value::String(content, true));
  return Given::OfDict(std::move(message));
}

absl::StatusOr<Value> NormalizeMessages(const Value& messages) {
  if (!messages.is(Kind::kList)) {
    return absl::InvalidArgumentError("the messages are no array");
  }
  std::vector<Value> out;
  for (const Value& message : messages.list()) {
    auto normal = NormalizeMessage(message);
    if (!normal.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("message ", out.size() + 1, " ", normal.status().message()));
    }
    out.push_back(*std::move(normal));
  }
  return Given::OfList(std::move(out));
}

absl::StatusOr<Value> ParseMessages(std::string_view json) {
  const auto messages = jinja::ParseJson(json, "the messages");
  if (!messages.ok()) return messages;
  return NormalizeMessages(*messages);
}

absl::StatusOr<Value> ParseTools(std::string_view json) {
  auto tools = jinja::ParseJson(json, "the tools");
  if (tools.ok() && !tools->is(Kind::kList)) {
    return absl::InvalidArgumentError("the tools are no array");
  }
  return tools;
}

absl::StatusOr<jinja::Variables> ParseVariables(std::string_view json) {
  const auto object = jinja::ParseJson(json, "the template's variables");
  if (!object.ok()) return object.status();
  if (!object->is(Kind::kDict)) {
    return absl::InvalidArgumentError("the template's variables are no object");
  }
  jinja::Variables variables;
  for (const Dict::Entry& entry : object->dict().entries()) {
    variables.emplace_back(entry.key.bytes(), entry.value);
  }
  return variables;
}

}  // namespace trine
