// Answers as an endpoint writes them: as frames of a stream while they are generated, or as one
// body in the end, from the same calls.
//
// A writer is for one request, and one thread at a time. `frames` is nullptr where nobody streams;
// the answer is collected then, and Body gives it.
#ifndef TRINE_TOOLS_SERVER_OPENAI_ANSWER_WRITER_H_
#define TRINE_TOOLS_SERVER_OPENAI_ANSWER_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/server/openai/answer_reader.h"
#include "tools/server/openai/frames.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

struct TokenChance {
  std::string bytes;  // of one token: may be half a character
  double logprob = 0;
};

struct TokenInfo {
  std::string bytes;
  std::optional<double> logprob;  // absent for the first token of a prompt
  std::vector<TokenChance> top;   // the model's best, in order
};

enum class AnswerEnd {
  kStop,    // the model's own end, or a stop string
  kLength,  // max_tokens, or the end of the context
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt's
};

// The same in every part of an answer.
struct AnswerHead {
  std::string id;
  std::string model;
  int64_t created = 0;  // seconds since 1970
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual void Begin(Frames* frames) = 0;
  // `text` has whole characters; it may be empty where a token's text is held back. `tokens` are
  // those sampled since the last call, and needed where logprobs were asked for.
  virtual void Text(size_t choice, std::string_view text, std::span<const TokenInfo> tokens,
                    Frames* frames) = 0;
  virtual void Finish(size_t choice, AnswerEnd end, Frames* frames) = 0;
  // All choices are finished.
  virtual void End(const Usage& usage, Frames* frames) = 0;
  // An error in place of what was still to come. Nothing may follow.
  virtual void Fail(const absl::Status& status, Frames* frames) = 0;
  // All that was written without frames.
  virtual std::string Body(const Usage& usage) = 0;

  // False where more text of this choice would be dropped: the one call that may be made has been.
  virtual bool WantsMore(size_t choice) const = 0;
};

// What is told of each choice: a text and its tokens, or calls.
std::unique_ptr<AnswerWriter> NewChatWriter(const GenerationRequest& request, AnswerHead head,
                                            ToolFamily family, const AnswerStart& start);
// Choices are numbered by prompt, then by n. An echoed prompt is written as the first text.
std::unique_ptr<AnswerWriter> NewCompletionWriter(const GenerationRequest& request,
                                                  AnswerHead head);
std::unique_ptr<AnswerWriter> NewResponsesWriter(const GenerationRequest& request, AnswerHead head,
                                                 ToolFamily family, const AnswerStart& start);

// A head for an answer that begins now: "chatcmpl-", "cmpl-" or "resp_" and a random rest.
AnswerHead NewAnswerHead(std::string_view prefix, std::string_view model);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_ANSWER_WRITER_H_
