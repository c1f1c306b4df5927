#include "tools/server/openai/answer_reader.h"

#include "tools/server/openai/call_reader.h"
#include "tools/server/openai/harmony_reader.h"

namespace trine::server {

bool NeedsAnswerReader(ToolFamily family, const GenerationRequest& request) {
  return family == ToolFamily::kHarmony || request.tool_choice.kind != ToolChoice::Kind::kNone;
}

std::unique_ptr<AnswerReader> NewAnswerReader(ToolFamily family, const GenerationRequest& request,
                                              const AnswerStart& start) {
  if (!NeedsAnswerReader(family, request)) return nullptr;
  const bool in_call = start.kind == AnswerStart::Kind::kCall;
  if (family != ToolFamily::kHarmony || in_call) {
    if (start.kind == AnswerStart::Kind::kContent) return nullptr;
    return std::make_unique<CallReader>(family, request.tools, in_call);
  }
  const bool may_call = request.tool_choice.kind != ToolChoice::Kind::kNone;
  return std::make_unique<HarmonyReader>(may_call, start);
}

}  // namespace trine::server
