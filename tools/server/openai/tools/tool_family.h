// Knows the forms in which models write tool calls. A model's chat template shows the form that the
// model was trained with, because the template writes earlier calls in this form.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trine::server {

enum class ToolFamily {
  kHermes,   // <tool_call>{"name", "arguments"}</tool_call>: Hermes, Qwen, SmolLM3
  kLlama3,   // {"name", "parameters"}, alone or after <|python_tag|>
  kMistral,  // [TOOL_CALLS] [{"name", "arguments"}], or [TOOL_CALLS]name[ARGS]{...}
  kGranite,  // <|tool_call|>[{"name", "arguments"}], with or without an end: Granite, Phi
  kCoder,    // <tool_call><function=name><parameter=x>...</parameter></function>: Qwen3-Coder
  kDeepSeek,  // <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name, JSON in a
              // fence
  kHarmony,  // channels, gpt-oss: <|channel|>commentary to=functions.name<|message|>{...}
  kGeneral,  // an answer that is {"name", "arguments"}, or as in kHermes
};

// Finds the family by the source of a chat template: the one for tools, if the model has one.
ToolFamily ToolFamilyOf(std::string_view template_source);

// Returns the name of the member that has the call's arguments.
std::string_view ArgumentsKey(ToolFamily family);
// Return the texts that begin a call, and the texts that may end it. All are whole characters.
std::span<const std::string_view> CallMarks(ToolFamily family);
std::span<const std::string_view> CallEnds(ToolFamily family);
// Returns whether an answer that begins with JSON, without a mark before it, may be a call.
bool CallsWithoutMark(ToolFamily family);

// Returns a new id for a call. Mistral's templates accept exactly nine letters.
std::string NewCallId(ToolFamily family);

}  // namespace trine::server
