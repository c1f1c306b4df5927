#include "tools/server/openai/tools/tool_family.h"

#include "tools/server/openai/ids.h"

namespace trine::server {
namespace {

constexpr std::string_view kHermesMarks[] = {"<tool_call>"};
constexpr std::string_view kHermesEnds[] = {"</tool_call>"};
constexpr std::string_view kLlamaMarks[] = {"<|python_tag|>"};
constexpr std::string_view kLlamaEnds[] = {"<|eom_id|>", "<|eot_id|>"};
constexpr std::string_view kMistralMarks[] = {"[TOOL_CALLS]"};
constexpr std::string_view kGraniteMarks[] = {"<|tool_call|>"};
constexpr std::string_view kGraniteEnds[] = {"<|/tool_call|>"};
// Qwen3-Coder sometimes omits the outer mark.
constexpr std::string_view kCoderMarks[] = {"<tool_call>", "<function="};
constexpr std::string_view kDeepSeekMarks[] = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"};
constexpr std::string_view kDeepSeekEnds[] = {"```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
                                              "<｜end▁of▁sentence｜>"};

}  // namespace

ToolFamily ToolFamilyOf(std::string_view source) {
  const auto has = [source](std::string_view text) { return source.find(text) != source.npos; };
  if (has("<|channel|>") && has("<|message|>")) return ToolFamily::kHarmony;
  if (has("<tool_call>") && has("<function=")) return ToolFamily::kCoder;
  if (has("<｜tool▁calls▁begin｜>")) return ToolFamily::kDeepSeek;
  if (has("<tool_call>")) return ToolFamily::kHermes;
  if (has("[TOOL_CALLS]")) return ToolFamily::kMistral;
  if (has("<|tool_call|>")) return ToolFamily::kGranite;
  if (has("<|python_tag|>")) return ToolFamily::kLlama3;
  if (has("<|start_header_id|>") && has("\"parameters\": ")) return ToolFamily::kLlama3;
  return ToolFamily::kGeneral;
}

std::string_view ArgumentsKey(ToolFamily family) {
  return family == ToolFamily::kLlama3 ? "parameters" : "arguments";
}

std::span<const std::string_view> CallMarks(ToolFamily family) {
  switch (family) {
    case ToolFamily::kHermes:
    case ToolFamily::kGeneral:
      return kHermesMarks;
    case ToolFamily::kLlama3:
      return kLlamaMarks;
    case ToolFamily::kMistral:
      return kMistralMarks;
    case ToolFamily::kGranite:
      return kGraniteMarks;
    case ToolFamily::kCoder:
      return kCoderMarks;
    case ToolFamily::kDeepSeek:
      return kDeepSeekMarks;
    case ToolFamily::kHarmony:
      break;
  }
  return {};
}

std::span<const std::string_view> CallEnds(ToolFamily family) {
  switch (family) {
    case ToolFamily::kHermes:
    case ToolFamily::kCoder:
    case ToolFamily::kGeneral:
      return kHermesEnds;
    case ToolFamily::kLlama3:
      return kLlamaEnds;
    case ToolFamily::kGranite:
      return kGraniteEnds;
    case ToolFamily::kDeepSeek:
      return kDeepSeekEnds;
    case ToolFamily::kMistral:
    case ToolFamily::kHarmony:
      break;
  }
  return {};
}

bool CallsWithoutMark(ToolFamily family) {
  return family == ToolFamily::kLlama3 || family == ToolFamily::kGeneral;
}

std::string NewCallId(ToolFamily family) {
  return family == ToolFamily::kMistral ? RandomId("", 9) : RandomId("call_", 24);
}

}  // namespace trine::server
