#include "tools/server/openai/requests/generation_request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/server/openai/requests/field.h"
#include "tools/server/openai/requests/prompt_fields.h"
#include "tools/server/openai/requests/sampling_fields.h"

namespace trine::server {
namespace {

constexpr size_t kMaxTools = 128;
constexpr size_t kMaxNameBytes = 128;

// A name is written into text that is parsed again, so nothing in it may look like the name's end.
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

// Returns the schema of the arguments. A function without a schema takes no arguments.
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

// Returns the tool as templates expect it, with everything they may print.
Json ReadTool(const Field& tool, std::vector<Tool>* tools) {
  if (!tool.is_object()) {
    tool.FailType("an object");
    return Json();
  }
  const std::string type = tool["type"].Text("function");
  if (type != "function") {
    tool["type"].Fail(absl::StrCat("is '", type, "': only functions are supported"));
  }
  const Field function = tool["function"];
  if (!function.Require() || !function["name"].Require()) return Json();
  const std::string name = function["name"].Text();
  if (!IsToolName(name)) {
    function["name"].Fail("is no name: expected 1 to 128 letters, digits and _-.:/");
  }
  if (Has(*tools, name)) function["name"].Fail("is the name of two tools");
  const std::string description = function["description"].Text();
  function["strict"].Or(false);
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
  if (!field["type"].Require()) return;
  const std::string type = field["type"].Text();
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
  const std::string word = field.Text();
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

// Sets the tools, the choice, and the tools that the template is told of: none if none may be
// called.
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

constexpr int32_t kMaxTopLogprobs = 20;

void ReadLogprobs(const Field& root, GenerationRequest* request) {
  const bool logprobs = root["logprobs"].Or(false);
  int32_t top = 0;
  root["top_logprobs"].Get(&top, 0, kMaxTopLogprobs);
  if (top > 0 && !logprobs) root["top_logprobs"].Fail("is given, and 'logprobs' is not true");
  if (logprobs) request->top_logprobs = top;
}

// Refuses all modalities but text.
void CheckModalities(const Field& modalities) {
  for (const Field& item : modalities.Items(16)) {
    if (!item.is_string()) return item.FailType("a string");
    if (item.json() != "text") item.Fail("is not supported: answers are 'text'");
  }
}

void CheckCompletion(const Field& root, const GenerationRequest& request) {
  if (!root["suffix"].Text().empty()) root["suffix"].Fail("is not supported");
  int32_t best_of = request.n;
  root["best_of"].Get(&best_of, 1, INT32_MAX);
  if (best_of != request.n) root["best_of"].Fail("is supported only where it equals 'n'");
}

constexpr size_t kMaxItems = 1 << 16;

Json Message(std::string role, std::string content) {
  return Json{{"role", std::move(role)}, {"content", std::move(content)}};
}

Json ReadItem(const Field& item) {
  if (!item.is_object()) {
    item.FailType("an item");
    return Json();
  }
  const std::string type = item["type"].Text("message");
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

// The server keeps nothing between requests, and calls are for /v1/chat/completions.
void CheckResponses(const Field& root) {
  for (const char* const name : {"previous_response_id", "conversation", "prompt"}) {
    if (root[name].present()) root[name].Fail("is not supported: answers are not kept");
  }
  if (!root["tools"].Items(1 << 10).empty()) {
    root["tools"].Fail("is not supported here: use /v1/chat/completions");
  }
  if (root["background"].Or(false)) root["background"].Fail("is not supported");
}

}  // namespace

absl::StatusOr<GenerationRequest> ParseChatRequest(std::string_view body,
                                                   const RequestDefaults& defaults) {
  return ReadRequest<GenerationRequest>(ParseRequest(body), [&](const Field& root, auto* request) {
    ChatPrompt prompt;
    prompt.messages_json = Dump(ReadMessages(root["messages"]));
    ReadSampling(root, defaults, request);
    ReadMaxTokens(root, {"max_completion_tokens", "max_tokens", "n_predict"}, 1, request);
    ReadLogprobs(root, request);
    ReadFormat(root, request);
    ReadTools(root, request, &prompt);
    prompt.variables_json = ReadTemplateVariables(root);
    CheckModalities(root["modalities"]);
    const bool must_call = request->tool_choice.kind == ToolChoice::Kind::kRequired ||
                           request->tool_choice.kind == ToolChoice::Kind::kNamed;
    if (must_call && request->constraint.kind != ConstraintText::Kind::kNone) {
      root["tool_choice"].Fail("asks for a call: the answer can't have another form too");
    }
    if (must_call && request->ignore_eos) {
      root["ignore_eos"].Fail("is true: a call that is asked for has to end");
    }
    request->prompt.chat = std::move(prompt);
  });
}

absl::StatusOr<GenerationRequest> ParseCompletionRequest(std::string_view body,
                                                         const RequestDefaults& defaults) {
  return ReadRequest<GenerationRequest>(ParseRequest(body), [&](const Field& root, auto* request) {
    request->prompt.plain =
        ReadPrompts(root["prompt"], defaults.vocab_size, static_cast<size_t>(defaults.max_choices));
    ReadSampling(root, defaults, request);
    ReadMaxTokens(root, {"max_completion_tokens", "max_tokens", "n_predict"}, 0, request);
    root["logprobs"].Get(&request->top_logprobs, 0, kMaxLogprobs);
    root["echo"].Get(&request->echo);
    ReadFormat(root, request);
    CheckCompletion(root, *request);
    const size_t choices = request->prompt.plain.size() * static_cast<size_t>(request->n);
    if (choices > static_cast<size_t>(defaults.max_choices)) {
      root["n"].Fail(absl::StrCat("times the prompts is ", choices, ": expected at most ",
                                  defaults.max_choices));
    }
  });
}

absl::StatusOr<GenerationRequest> ParseResponsesRequest(std::string_view body,
                                                        const RequestDefaults& defaults) {
  return ReadRequest<GenerationRequest>(ParseRequest(body), [&](const Field& root, auto* request) {
    ChatPrompt prompt;
    root["instructions"].Get(&request->instructions);
    prompt.messages_json = Dump(ReadInput(root["input"], request->instructions));
    ReadSampling(root, defaults, request);
    ReadMaxTokens(root, {"max_output_tokens"}, 1, request);
    const Field format = root["text"]["format"];
    ReadFormatObject(format, true, &request->constraint);
    if (format.is_object()) request->text_format_json = Dump(format.json());
    if (root["metadata"].ExpectObject() && root["metadata"].present()) {
      request->metadata_json = Dump(root["metadata"].json());
    }
    CheckResponses(root);
    if (request->n != 1) root["n"].Fail("is not supported here: there is one answer");
    if (request->constraint.kind != ConstraintText::Kind::kNone && request->ignore_eos) {
      root["ignore_eos"].Fail("is true: an answer of a given form has to end");
    }
    request->prompt.chat = std::move(prompt);
  });
}

}  // namespace trine::server
