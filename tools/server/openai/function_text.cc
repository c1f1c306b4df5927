#include "tools/server/openai/function_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "tools/server/openai/json.h"
#include "tools/server/openai/marks.h"

namespace trine::server {
namespace {

using State = FunctionText::State;

constexpr std::string_view kParameterBegin = "<parameter=";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::string_view kInside[] = {kParameterBegin, kFunctionEnd};

void SkipSpace(std::string_view* text) {
  while (!text->empty() && absl::ascii_isspace(static_cast<unsigned char>(text->front()))) {
    text->remove_prefix(1);
  }
}

// A name up to '>', which is taken too. False: there is no such, or not yet (`*cut`).
bool TakeName(std::string_view* text, std::string* name, bool* cut) {
  const size_t end = text->find('>');
  *cut = end == text->npos && text->find_first_of("<\n") == text->npos;
  if (end == text->npos) return false;
  *name = text->substr(0, end);
  text->remove_prefix(end + 1);
  return !name->empty() && name->find_first_of("<>{}\"\n ") == name->npos;
}

// Values have lines of their own.
std::string_view WithoutLineEnds(std::string_view value, bool whole) {
  if (value.starts_with("\n")) value.remove_prefix(1);
  if (whole && value.ends_with("\n")) value.remove_suffix(1);
  return value;
}

// Where a value ends: before the end mark behind which the call goes on, since values may have such
// marks in them. npos: not yet.
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

// Whether a parameter may be a text, as far as its schema says anything.
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

// What has come of a value, as the beginning of JSON.
std::string CutValue(std::string_view text, bool may_be_text) {
  if (!may_be_text) return std::string(text);
  std::string quoted = Dump(Json(std::string(text)));
  quoted.pop_back();
  return quoted;
}

}  // namespace

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
  std::string last;  // a parameter that has no end
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
