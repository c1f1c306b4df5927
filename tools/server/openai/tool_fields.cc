#include "tools/server/openai/tool_fields.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

constexpr size_t kMaxTools = 128;
constexpr size_t kMaxNameBytes = 128;

// A name stands in the middle of text that is read again: nothing in it may look like the end.
bool IsToolName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                  c == '.' || c == ':' || c == '/';
         });
}

bool Has(const std::vector<Tool>& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(),
                     [&name](const Tool& tool) { return tool.name == name; });
}

// The schema of the arguments. Without one the function takes none.
Json ReadParameters(const Field& parameters) {
  if (!parameters.present()) {
    return Json{
        {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  }
  if (!parameters.is_object()) {
    parameters.FailType("a JSON schema");
    return Json();
  }
  Json schema = parameters.json();
  const Field type = parameters["type"];
  if (!type.present()) {
    schema["type"] = "object";
  } else if (type.json() != "object") {
    type.Fail("is not 'object': expected the schema of an object");
  }
  return schema;
}

// The tool as templates expect it, with everything they may print.
Json ReadTool(const Field& tool, std::vector<Tool>* tools) {
  if (!tool.is_object()) {
    tool.FailType("an object");
    return Json();
  }
  std::string type = "function", name, description;
  tool["type"].Get(&type);
  if (type != "function") {
    tool["type"].Fail(absl::StrCat("is '", type, "': only functions are supported"));
  }
  const Field function = tool["function"];
  if (!function.Require() || !function["name"].Require()) return Json();
  function["name"].Get(&name);
  if (!IsToolName(name)) {
    function["name"].Fail("is no name: expected 1 to 128 letters, digits and _-.:/");
  }
  if (Has(*tools, name)) function["name"].Fail("is the name of two tools");
  function["description"].Get(&description);
  bool strict = false;
  function["strict"].Get(&strict);
  const Json parameters = ReadParameters(function["parameters"]);
  if (tool.failed()) return Json();
  tools->push_back(Tool{.name = name, .parameters_json = Dump(parameters)});
  Json out = tool.json();
  out["type"] = "function";
  out["function"]["description"] = description;
  if (!function["parameters"].present()) out["function"]["parameters"] = parameters;
  return out;
}

void ReadNamedChoice(const Field& field, const std::vector<Tool>& tools, ToolChoice* choice) {
  std::string type;
  if (!field["type"].Require()) return;
  field["type"].Get(&type);
  if (type != "function") {
    return field["type"].Fail(absl::StrCat("is '", type, "': only 'function' is supported"));
  }
  const Field function = field["function"];
  if (!function.Require() || !function["name"].Require()) return;
  function["name"].Get(&choice->name);
  if (!Has(tools, choice->name)) function["name"].Fail("is none of the tools");
  choice->kind = ToolChoice::Kind::kNamed;
}

void ReadChoice(const Field& field, const std::vector<Tool>& tools, ToolChoice* choice) {
  choice->kind = tools.empty() ? ToolChoice::Kind::kNone : ToolChoice::Kind::kAuto;
  if (!field.present()) return;
  if (field.is_object()) return ReadNamedChoice(field, tools, choice);
  if (!field.is_string()) return field.FailType("a string or an object");
  std::string word;
  field.Get(&word);
  if (word == "none") {
    choice->kind = ToolChoice::Kind::kNone;
  } else if (word == "required") {
    if (tools.empty()) return field.Fail("is 'required', and there are no tools");
    choice->kind = ToolChoice::Kind::kRequired;
  } else if (word != "auto") {
    field.Fail(absl::StrCat("is '", word,
                            "': expected 'none', 'auto', 'required' or the function to call"));
  }
}

}  // namespace

void ReadTools(const Field& root, GenerationRequest* request, ChatPrompt* prompt) {
  Json told = Json::array();
  for (const Field& tool : root["tools"].Items(kMaxTools)) {
    told.push_back(ReadTool(tool, &request->tools));
  }
  ReadChoice(root["tool_choice"], request->tools, &request->tool_choice);
  root["parallel_tool_calls"].Get(&request->parallel_tool_calls);
  for (const char* const old : {"functions", "function_call"}) {
    if (root[old].present()) root[old].Fail("is not supported: use tools and tool_choice");
  }
  if (request->tool_choice.kind != ToolChoice::Kind::kNone) prompt->tools_json = Dump(told);
}

}  // namespace trine::server
