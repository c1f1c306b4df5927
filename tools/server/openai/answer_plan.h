// What a request asks of the model's very first words, and of all that follow: a call that must be
// made, or an answer of a given form.
#ifndef TRINE_TOOLS_SERVER_OPENAI_ANSWER_PLAN_H_
#define TRINE_TOOLS_SERVER_OPENAI_ANSWER_PLAN_H_

#include <string>

#include "tools/server/openai/answer_reader.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

struct AnswerPlan {
  // Goes behind the prompt as the template's own words: what reads like a control token is one.
  std::string opening;
  // Of what follows. Whatever it allows, read from `start` on, is a call where one must be made.
  ConstraintText constraint;
  AnswerStart start;
};

// A call that must be made is one call. With tools that may be called and a form for the answer,
// the answer has the form, and nothing is called.
AnswerPlan PlanAnswer(const GenerationRequest& request, ToolFamily family);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_ANSWER_PLAN_H_
