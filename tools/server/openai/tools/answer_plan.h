// Plans the answer to a request that demands a tool call or a format: how the answer must begin,
// and which constraint the rest must follow.
#pragma once

#include <string>

#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/openai/tools/answer_reader.h"

namespace trine::server {

struct AnswerPlan {
  // The text that follows the prompt as if the template had written it: text such as <|im_end|> is
  // a control token.
  std::string opening;
  // Applies to the text that follows `opening`. If a call must be made, every text that the
  // constraint allows is a call when it is read from `start`.
  ConstraintText constraint;
  AnswerStart start;
};

// Plans an answer. If a call must be made, the answer is exactly one call. If the request has a
// format as well as tools that may be called, the answer has the format, and no tool is called.
AnswerPlan PlanAnswer(const GenerationRequest& request, ToolFamily family);

}  // namespace trine::server
