#include "tools/server/openai/call_text.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

const Json* Find(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

bool ReadCall(const Json& json, ToolFamily family, ToolCall* call) {
  if (!json.is_object()) return false;
  // Some write calls the way the API does.
  const Json* const function = Find(json, "function");
  const Json& object = function != nullptr && function->is_object() ? *function : json;
  const Json* const name = Find(object, "name");
  if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return false;
  }
  const Json* arguments = Find(object, "arguments");
  if (arguments == nullptr) arguments = Find(object, "parameters");
  if (arguments == nullptr) {
    call->arguments = "{}";
  } else if (arguments->is_object()) {
    call->arguments = Dump(*arguments);
  } else if (arguments->is_string()) {
    call->arguments = ReadArguments(arguments->get_ref<const std::string&>());
  }
  if (call->arguments.empty()) return false;
  call->name = name->get<std::string>();
  call->id = NewCallId(family);
  return true;
}

}  // namespace

bool JsonExtent::Push(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return false;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (c == '}' || c == ']') return --depth_ == 0;
  return false;
}

std::vector<ToolCall> ReadCalls(std::string_view text, ToolFamily family) {
  std::vector<ToolCall> calls;
  const auto json = ParseJson(text);
  if (!json.ok()) return calls;
  const Json list = json->is_array() ? *json : Json::array({*json});
  for (const Json& item : list) {
    ToolCall call;
    if (!ReadCall(item, family, &call)) return {};
    calls.push_back(std::move(call));
  }
  return calls;
}

std::string ReadArguments(std::string_view text) {
  if (absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())).empty()) return "{}";
  const auto json = ParseJson(text);
  return json.ok() && json->is_object() ? Dump(*json) : "";
}

}  // namespace trine::server
