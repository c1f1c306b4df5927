// What the chunks of a streamed completion, and its whole body, have in common.
#ifndef TRINE_TOOLS_SERVER_OPENAI_CHUNKS_H_
#define TRINE_TOOLS_SERVER_OPENAI_CHUNKS_H_

#include <string>

#include "tools/server/openai/answer_writer.h"
#include "tools/server/openai/json.h"

namespace trine::server {

Json UsageJson(const Usage& usage);
const char* FinishReasonText(AnswerEnd end);

class Chunks {
 public:
  // `with_usage`: it was asked for, so that every chunk but the last has none.
  Chunks(const AnswerHead& head, const char* object, bool with_usage);

  std::string Of(const Json& choice) const;
  std::string OfUsage(const Usage& usage) const;

 private:
  std::string begin_;
  std::string end_;
};

// The body of all choices.
std::string WholeAnswer(const AnswerHead& head, const char* object, Json choices,
                        const Usage& usage);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_CHUNKS_H_
