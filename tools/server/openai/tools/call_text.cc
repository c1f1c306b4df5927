#include "tools/server/openai/tools/call_text.h"

#include <algorithm>
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
  // Some models write calls as the API does.
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

bool Skip(char c, std::string_view* text) {
  SkipSpace(text);
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

// Returns the length of the value at the front; npos: its end is missing.
size_t BytesOfValue(std::string_view text) {
  if (text.empty()) return text.npos;
  const bool text_value = text[0] == '"';
  if (!text_value && text[0] != '{' && text[0] != '[') return text.find_first_of(",}] \t\r\n");
  JsonExtent extent;
  // A string's end shows when it is treated as the only item of a list.
  if (text_value) extent.Push('[');
  for (size_t i = 0; i < text.size(); ++i) {
    if (extent.Push(text[i])) return i + 1;
    if (text_value && i > 0 && !extent.in_string()) return i + 1;
  }
  return text.npos;
}

// Decodes a JSON string whose end is missing.
std::string BeginningOfString(std::string_view text) {
  // Drops half an escape. The longest escape has six characters, or twelve as a surrogate pair.
  for (size_t less = 0; less <= 12 && less < text.size(); ++less) {
    std::string whole(text.substr(0, text.size() - less));
    whole += '"';
    if (const auto json = ParseJson(whole); json.ok()) return json->get<std::string>();
  }
  return "";
}

// Reads the object that `text` begins with and that has no end.
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

using State = FunctionText::State;

constexpr std::string_view kParameterBegin = "<parameter=";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::string_view kInside[] = {kParameterBegin, kFunctionEnd};

// Takes a name up to and including '>'. Returns false if there is none; sets *cut if it may still
// come.
bool TakeName(std::string_view* text, std::string* name, bool* cut) {
  const size_t end = text->find('>');
  *cut = end == text->npos && text->find_first_of("<\n") == text->npos;
  if (end == text->npos) return false;
  *name = text->substr(0, end);
  text->remove_prefix(end + 1);
  return !name->empty() && name->find_first_of("<>{}\"\n ") == name->npos;
}

// Values are on lines of their own.
std::string_view WithoutLineEnds(std::string_view value, bool whole) {
  if (value.starts_with("\n")) value.remove_prefix(1);
  if (whole && value.ends_with("\n")) value.remove_suffix(1);
  return value;
}

// Returns the end of a value, or npos if it has not come yet. A value may contain end marks, so it
// ends only at an end mark after which the call continues.
size_t EndOfValue(std::string_view text) {
  for (size_t at = 0; (at = text.find(kParameterEnd, at)) != text.npos; ++at) {
    std::string_view rest = text.substr(at + kParameterEnd.size());
    SkipSpace(&rest);
    if (rest.starts_with(kParameterBegin) || rest.starts_with(kFunctionEnd)) return at;
    if (rest.empty() || BeginsMark(rest, kInside)) return at;
  }
  return text.npos;
}

Json SchemaOf(const std::vector<Tool>& tools, const std::string& name) {
  const auto tool =
      std::find_if(tools.begin(), tools.end(), [&name](const Tool& t) { return t.name == name; });
  if (tool == tools.end()) return Json::object();
  return ParseJson(tool->parameters_json).value_or(Json::object());
}

// Returns whether the schema allows the parameter to be a text.
bool MayBeText(const Json& schema, const std::string& parameter) {
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return true;
  const auto member = properties->find(parameter);
  if (member == properties->end() || !member->is_object()) return true;
  const auto type = member->find("type");
  if (type == member->end()) {
    const auto values = member->find("enum");
    return values == member->end() || !values->is_array() ||
           std::any_of(values->begin(), values->end(), [](const Json& v) { return v.is_string(); });
  }
  if (type->is_array()) return std::find(type->begin(), type->end(), "string") != type->end();
  return *type == "string";
}

Json ValueOf(std::string_view text, bool may_be_text) {
  if (may_be_text) return std::string(text);
  if (text == "True" || text == "False") return text == "True";
  if (text == "None") return Json();
  if (auto json = ParseJson(text); json.ok()) return *std::move(json);
  return std::string(text);
}

// Writes a value that has come in part as the beginning of JSON.
std::string CutValue(std::string_view text, bool may_be_text) {
  if (!may_be_text) return std::string(text);
  std::string quoted = Dump(Json(std::string(text)));
  quoted.pop_back();
  return quoted;
}

}  // namespace

FoundMark FindMark(std::string_view text, std::span<const std::string_view> marks) {
  FoundMark found;
  for (const std::string_view mark : marks) {
    const size_t at = text.find(mark);
    if (at < found.at) found = {.at = at, .mark = mark};
  }
  return found;
}

size_t HeldBytes(std::string_view text, std::span<const std::string_view> marks) {
  size_t longest = 0;
  for (const std::string_view mark : marks) longest = std::max(longest, mark.size());
  for (size_t bytes = std::min(text.size(), longest); bytes > 0; --bytes) {
    if (BeginsMark(text.substr(text.size() - bytes), marks)) return bytes;
  }
  return 0;
}

bool BeginsMark(std::string_view text, std::span<const std::string_view> marks) {
  return std::any_of(marks.begin(), marks.end(), [text](std::string_view mark) {
    return text.size() < mark.size() && mark.starts_with(text);
  });
}

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

FunctionText ReadFunction(std::string_view text, const std::vector<Tool>& tools) {
  FunctionText read;
  text.remove_prefix(std::min(kFunctionBegin.size(), text.size()));
  bool cut = false;
  std::string name;
  if (!TakeName(&text, &name, &cut)) {
    if (cut) read.state = State::kCut;
    return read;
  }
  read.call.name = name;
  const Json schema = SchemaOf(tools, name);
  Json arguments = Json::object();
  std::string last;  // a parameter without its end
  while (true) {
    SkipSpace(&text);
    if (text == kFunctionEnd) {
      read.state = State::kWhole;
      read.call.arguments = Dump(arguments);
      return read;
    }
    if (text.empty() || BeginsMark(text, kInside)) break;
    if (!text.starts_with(kParameterBegin)) return {};
    text.remove_prefix(kParameterBegin.size());
    std::string parameter;
    if (!TakeName(&text, &parameter, &cut)) {
      if (cut) break;
      return {};
    }
    const bool may_be_text = MayBeText(schema, parameter);
    const size_t end = EndOfValue(text);
    if (end == text.npos) {
      const size_t held = HeldBytes(text, {&kParameterEnd, 1});
      const auto value = WithoutLineEnds(text.substr(0, text.size() - held), held > 0);
      last = Dump(Json(parameter)) + ":" + CutValue(value, may_be_text);
      break;
    }
    arguments[parameter] = ValueOf(WithoutLineEnds(text.substr(0, end), true), may_be_text);
    text.remove_prefix(end + kParameterEnd.size());
  }
  read.state = State::kCut;
  read.call.cut = true;
  read.call.arguments = Dump(arguments);
  read.call.arguments.pop_back();
  if (!last.empty() && !arguments.empty()) read.call.arguments += ",";
  read.call.arguments += last;
  return read;
}

}  // namespace trine::server
