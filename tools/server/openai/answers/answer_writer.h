// Writes the answer of an endpoint: as frames of a stream while it is generated, or as one body at
// the end. The caller makes the same calls in both cases.
//
// A writer is for one request, and one thread at a time. `frames` is null if the answer is not
// streamed; the writer then collects the answer, and Body returns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/openai/tools/answer_reader.h"

namespace trine::server {

// Server-sent events, collected until they are sent.
class Frames {
 public:
  // `json` must be one line.
  void Data(std::string_view json) { Append("data: ", json, "\n\n"); }
  void Event(std::string_view name, std::string_view json) {
    Append("event: ", name, "\n");
    Data(json);
  }
  void Done() { Data("[DONE]"); }

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  std::string Take() { return std::exchange(text_, {}); }

 private:
  void Append(std::string_view head, std::string_view body, std::string_view tail) {
    text_.append(head).append(body).append(tail);
  }

  std::string text_;
};

// A token and its log-probability.
struct TokenChance {
  std::string bytes;  // the token's bytes, which need not be whole characters
  double logprob = 0;
};

struct TokenInfo {
  std::string bytes;
  std::optional<double> logprob;  // nullopt for the first token of a prompt
  std::vector<TokenChance> top;   // the most probable tokens, the best first
};

// The reason why an answer ended.
enum class AnswerEnd {
  kStop,    // the model ended the text, or a stop string did
  kLength,  // max_tokens was reached, or the context was full
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;  // how many of the prompt's tokens need not be evaluated
};

// The members that every part of an answer repeats.
struct AnswerHead {
  std::string id;
  std::string model;
  int64_t created = 0;  // seconds since 1970
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual void Begin(Frames* frames) = 0;
  // Adds text of a choice. `text` has whole characters. It may be empty while a token's text is
  // held back. `tokens` are the tokens sampled since the last call; they are needed only if the
  // request asks for log-probabilities.
  virtual void Text(size_t choice, std::string_view text, std::span<const TokenInfo> tokens,
                    Frames* frames) = 0;
  virtual void Finish(size_t choice, AnswerEnd end, Frames* frames) = 0;
  // Ends the answer after all choices are finished.
  virtual void End(const Usage& usage, Frames* frames) = 0;
  // Writes an error in place of the rest. It must be the last call.
  virtual void Fail(const absl::Status& status, Frames* frames) = 0;
  // Returns the body of an answer that was written without frames.
  virtual std::string Body(const Usage& usage) = 0;

  // Returns false if more text of this choice would be dropped, because only one call is allowed
  // and it has been made.
  virtual bool WantsMore(size_t choice) const = 0;
};

// Returns a writer for chat completions. A choice is a text, or tool calls, or both.
std::unique_ptr<AnswerWriter> NewChatWriter(const GenerationRequest& request, AnswerHead head,
                                            ToolFamily family, const AnswerStart& start);
// Returns a writer for text completions. Choices are numbered by prompt, then by n. An echoed
// prompt is written as the choice's first text.
std::unique_ptr<AnswerWriter> NewCompletionWriter(const GenerationRequest& request,
                                                  AnswerHead head);
// Returns a writer for /v1/responses.
std::unique_ptr<AnswerWriter> NewResponsesWriter(const GenerationRequest& request, AnswerHead head,
                                                 ToolFamily family, const AnswerStart& start);

// Returns the head of an answer that begins now. Its id is `prefix` ("chatcmpl-", "cmpl-" or
// "resp_") and random letters.
AnswerHead NewAnswerHead(std::string_view prefix, std::string_view model);

}  // namespace trine::server
