// The ways in which models write tool calls. A model's chat template shows which one it was trained
// with: it writes earlier calls the same way.
#ifndef TRINE_TOOLS_SERVER_OPENAI_TOOL_FAMILY_H_
#define TRINE_TOOLS_SERVER_OPENAI_TOOL_FAMILY_H_

#include <span>
#include <string>
#include <string_view>

namespace trine::server {

enum class ToolFamily {
  kHermes,   // <tool_call>{"name", "arguments"}</tool_call>: Hermes, Qwen, SmolLM3
  kLlama3,   // {"name", "parameters"}, alone or behind <|python_tag|>
  kMistral,  // [TOOL_CALLS] [{"name", "arguments"}], or [TOOL_CALLS]name[ARGS]{...}
  kGranite,  // <|tool_call|>[{"name", "arguments"}], with or without an end: Granite, Phi
  kCoder,    // <tool_call><function=name><parameter=x>...</parameter></function>: Qwen3-Coder
  kDeepSeek,  // <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name, JSON in a
              // fence
  kHarmony,  // channels, gpt-oss: <|channel|>commentary to=functions.name<|message|>{...}
  kGeneral,  // an answer that is {"name", "arguments"}, or as Hermes has it
};

// By the source of a chat template: for tools, where the model has one of its own for that.
ToolFamily ToolFamilyOf(std::string_view template_source);
const char* ToolFamilyName(ToolFamily family);

// What the call's arguments are named.
std::string_view ArgumentsKey(ToolFamily family);
// Texts a call begins with, and such as may end it. None begins inside a character.
std::span<const std::string_view> CallMarks(ToolFamily family);
std::span<const std::string_view> CallEnds(ToolFamily family);
// An answer that begins with JSON may be a call.
bool CallsWithoutMark(ToolFamily family);

// A name for a call. Templates of Mistral's accept nine letters and no others.
std::string NewCallId(ToolFamily family);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_TOOL_FAMILY_H_
