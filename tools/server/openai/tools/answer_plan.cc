#include "tools/server/openai/tools/answer_plan.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

// Changes the references in a schema that has become a part of another one, at `place`.
void MoveReferences(const std::string& place, Json* schema) {
  if (schema->is_array()) {
    for (Json& item : *schema) MoveReferences(place, &item);
  }
  if (!schema->is_object()) return;
  for (auto& [name, value] : schema->get_ref<Json::object_t&>()) {
    if (name == "const" || name == "enum" || name == "default" || name == "examples") continue;
    if (name == "$ref" && value.is_string()) {
      const std::string& target = value.get_ref<const std::string&>();
      if (absl::StartsWith(target, "#")) value = absl::StrCat("#", place, target.substr(1));
    } else {
      MoveReferences(place, &value);
    }
  }
}

Json ParametersAt(const Tool& tool, const std::string& place) {
  // Can't fail: the text was written from JSON.
  Json schema = ParseJson(tool.parameters_json).value_or(Json::object());
  MoveReferences(place, &schema);
  return schema;
}

Json CallSchema(const Tool& tool, ToolFamily family, const std::string& place) {
  const std::string key(ArgumentsKey(family));
  const Json properties{{"name", Json{{"const", tool.name}}},
                        {key, ParametersAt(tool, absl::StrCat(place, "/properties/", key))}};
  return Json{{"type", "object"},
              {"properties", properties},
              {"required", Json::array({"name", key})},
              {"additionalProperties", false}};
}

Json AnyCallSchema(const std::vector<const Tool*>& tools, ToolFamily family,
                   const std::string& place) {
  if (tools.size() == 1) return CallSchema(*tools[0], family, place);
  Json calls = Json::array();
  for (const Tool* tool : tools) {
    calls.push_back(CallSchema(*tool, family, absl::StrCat(place, "/anyOf/", calls.size())));
  }
  return Json{{"anyOf", std::move(calls)}};
}

Json ListOfOne(const std::vector<const Tool*>& tools, ToolFamily family) {
  return Json{{"type", "array"},
              {"items", AnyCallSchema(tools, family, "/items")},
              {"minItems", 1},
              {"maxItems", 1}};
}

ConstraintText SchemaText(const Json& schema) {
  return {.kind = ConstraintText::Kind::kJsonSchema, .text = Dump(schema), .param = "tools"};
}

AnswerPlan PlanCall(const std::vector<const Tool*>& tools, ToolFamily family) {
  AnswerPlan plan;
  plan.start.kind = AnswerStart::Kind::kCall;
  switch (family) {
    case ToolFamily::kHermes:
    case ToolFamily::kCoder:  // as JSON, which can be held to a schema
      plan.opening = "<tool_call>\n";
      break;
    case ToolFamily::kMistral:
      plan.opening = "[TOOL_CALLS]";
      break;
    case ToolFamily::kGranite:
      plan.opening = "<|tool_call|>";
      break;
    case ToolFamily::kDeepSeek:
      plan.opening = "<｜tool▁calls▁begin｜>";
      break;
    case ToolFamily::kHarmony:
      if (tools.size() == 1) {
        plan.opening = absl::StrCat("<|channel|>commentary to=functions.", tools[0]->name,
                                    " <|constrain|>json<|message|>");
        plan.start = {.kind = AnswerStart::Kind::kArguments, .name = tools[0]->name};
        plan.constraint = SchemaText(ParametersAt(*tools[0], ""));
        return plan;
      }
      // The model has to give the name, and its only place after the header is the JSON.
      plan.opening = "<|channel|>commentary <|constrain|>json<|message|>";
      break;
    case ToolFamily::kLlama3:
    case ToolFamily::kGeneral:
      break;
  }
  const bool list = family == ToolFamily::kMistral || family == ToolFamily::kGranite;
  plan.constraint = SchemaText(list ? ListOfOne(tools, family) : AnyCallSchema(tools, family, ""));
  return plan;
}

}  // namespace

AnswerPlan PlanAnswer(const GenerationRequest& request, ToolFamily family) {
  const ToolChoice& choice = request.tool_choice;
  std::vector<const Tool*> tools;
  for (const Tool& tool : request.tools) {
    const bool named = choice.kind == ToolChoice::Kind::kNamed && tool.name == choice.name;
    if (named || choice.kind == ToolChoice::Kind::kRequired) tools.push_back(&tool);
  }
  if (!tools.empty()) return PlanCall(tools, family);
  AnswerPlan plan;
  plan.constraint = request.constraint;
  if (request.constraint.kind == ConstraintText::Kind::kNone) return plan;
  plan.start.kind = AnswerStart::Kind::kContent;
  const bool chat = request.prompt.chat.has_value();
  if (family == ToolFamily::kHarmony && chat) plan.opening = "<|channel|>final<|message|>";
  return plan;
}

}  // namespace trine::server
