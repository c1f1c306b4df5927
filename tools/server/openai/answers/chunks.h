// What the writers of chat and text completions have in common: chunks of a stream, whole bodies,
// and log-probabilities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/json.h"

namespace trine::server {

const char* FinishReasonText(AnswerEnd end);  // "stop" or "length"

class ChunkWriter : public AnswerWriter {
 public:
  void End(const Usage& usage, Frames* frames) override;
  void Fail(const absl::Status& status, Frames* frames) override;
  std::string Body(const Usage& usage) override;

 protected:
  struct Choice {
    std::vector<TokenInfo> pending;  // tokens whose text has not been written yet
    std::vector<TokenInfo> tokens;   // collected where the answer is not streamed
    AnswerEnd end = AnswerEnd::kStop;
  };

  // `chunk` and `whole` are the members "object" of a chunk and of a whole answer.
  ChunkWriter(const GenerationRequest& request, AnswerHead head, const char* chunk,
              const char* whole, size_t choices);

  // Sends a chunk with one choice.
  void Send(const Json& choice, Frames* frames) const;
  // Takes the pending tokens. Collects them, too, where the answer is not streamed.
  static std::vector<TokenInfo> TakePending(Choice* choice, const Frames* frames);
  // Returns a choice of a whole answer.
  virtual Json WholeChoice(size_t index) const = 0;

  const bool logprobs_;

 private:
  const AnswerHead head_;
  const char* const whole_;
  const size_t n_choices_;
  const bool include_usage_;  // then every chunk but the last one says "usage": null
  std::string begin_;         // of every chunk
};

// Returns the log-probabilities as chat completions have them: [{"token", "logprob", "bytes",
// "top_logprobs": [...]}, ...]
Json ChatLogprobs(std::span<const TokenInfo> tokens);

// Returns the log-probabilities as text completions have them: {"tokens", "token_logprobs",
// "top_logprobs", "text_offset"}. *offset is the position in characters at which the first token's
// text begins; adds the length of all tokens to it. Writes a token whose text is not whole
// characters as "bytes:\xe2\x80". "top_logprobs" always has the token that was sampled, as an
// additional entry if need be.
Json CompletionLogprobs(std::span<const TokenInfo> tokens, int64_t* offset);

}  // namespace trine::server
