#include "tools/server/openai/call_text.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

void SkipSpace(std::string_view* text) {
  while (!text->empty() && IsSpace(text->front())) text->remove_prefix(1);
}

bool Skip(char c, std::string_view* text) {
  SkipSpace(text);
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

// Bytes of the value at the front; npos where its end is not there.
size_t BytesOfValue(std::string_view text) {
  if (text.empty()) return text.npos;
  const bool text_value = text[0] == '"';
  if (!text_value && text[0] != '{' && text[0] != '[') return text.find_first_of(",}] \t\r\n");
  JsonExtent extent;
  // As the only item of a list, a string has an end that can be told.
  if (text_value) extent.Push('[');
  for (size_t i = 0; i < text.size(); ++i) {
    if (extent.Push(text[i])) return i + 1;
    if (text_value && i > 0 && !extent.in_string()) return i + 1;
  }
  return text.npos;
}

// Of a string in JSON whose end is missing.
std::string BeginningOfString(std::string_view text) {
  // Half an escape says nothing; the longest has six characters, or twelve with its other half.
  for (size_t less = 0; less <= 12 && less < text.size(); ++less) {
    std::string whole(text.substr(0, text.size() - less));
    whole += '"';
    if (const auto json = ParseJson(whole); json.ok()) return json->get<std::string>();
  }
  return "";
}

// The object that `text` begins with and that does not end.
void ReadCutCall(std::string_view text, ToolCall* call) {
  if (!Skip('{', &text)) return;
  do {
    SkipSpace(&text);
    const size_t name_bytes = BytesOfValue(text);
    if (name_bytes == text.npos) return;
    const auto name = ParseJson(text.substr(0, name_bytes));
    text.remove_prefix(name_bytes);
    if (!name.ok() || !name->is_string() || !Skip(':', &text)) return;
    SkipSpace(&text);
    const size_t bytes = BytesOfValue(text);
    const bool whole = bytes != text.npos;
    const std::string_view value = text.substr(0, bytes);
    if (*name == "function" && absl::StartsWith(absl::string_view(value.data(), value.size()), "{"))
      return ReadCutCall(value, call);
    if (*name == "name" && whole) {
      const auto read = ParseJson(value);
      if (read.ok() && read->is_string()) call->name = read->get<std::string>();
    }
    if ((*name == "arguments" || *name == "parameters") && !value.empty()) {
      const bool quoted = value[0] == '"';
      call->arguments = quoted ? BeginningOfString(whole ? value.substr(0, bytes - 1) : value)
                        : value[0] == '{' ? std::string(value)
                                          : "";
    }
    if (!whole) return;
    text.remove_prefix(bytes);
  } while (Skip(',', &text));
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

std::vector<ToolCall> ReadCutCalls(std::string_view text, ToolFamily family) {
  std::vector<ToolCall> calls;
  const bool list = Skip('[', &text);
  SkipSpace(&text);
  for (size_t bytes; list && (bytes = BytesOfValue(text)) != text.npos;) {
    std::vector<ToolCall> whole = ReadCalls(text.substr(0, bytes), family);
    if (whole.empty()) return calls;
    for (ToolCall& call : whole) calls.push_back(std::move(call));
    text.remove_prefix(bytes);
    Skip(',', &text);
    SkipSpace(&text);
  }
  ToolCall last;
  ReadCutCall(text, &last);
  if (last.name.empty()) return calls;
  last.id = NewCallId(family);
  last.cut = true;
  calls.push_back(std::move(last));
  return calls;
}

std::string ReadArguments(std::string_view text) {
  if (absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())).empty()) return "{}";
  const auto json = ParseJson(text);
  return json.ok() && json->is_object() ? Dump(*json) : "";
}

}  // namespace trine::server
