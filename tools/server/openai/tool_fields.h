// tools, tool_choice and parallel_tool_calls of a request.
#ifndef TRINE_TOOLS_SERVER_OPENAI_TOOL_FIELDS_H_
#define TRINE_TOOLS_SERVER_OPENAI_TOOL_FIELDS_H_

#include "tools/server/openai/field.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

// Fills in the tools, the choice, and what the template is told of them: nothing, where none may be
// called.
void ReadTools(const Field& root, GenerationRequest* request, ChatPrompt* prompt);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_TOOL_FIELDS_H_
