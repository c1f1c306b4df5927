// The answer of POST /v1/chat/completions.
#ifndef TRINE_TOOLS_SERVER_OPENAI_CHAT_WRITER_H_
#define TRINE_TOOLS_SERVER_OPENAI_CHAT_WRITER_H_

#include <memory>
#include <string>
#include <vector>

#include "tools/server/openai/answer_reader.h"
#include "tools/server/openai/answer_writer.h"
#include "tools/server/openai/chunks.h"

namespace trine::server {

class ChatWriter : public AnswerWriter {
 public:
  ChatWriter(const GenerationRequest& request, AnswerHead head, ToolFamily family,
             const AnswerStart& start);

  void Begin(Frames* frames) override;
  void Text(size_t choice, std::string_view text, std::span<const TokenInfo> tokens,
            Frames* frames) override;
  void Finish(size_t choice, AnswerEnd end, Frames* frames) override;
  void End(const Usage& usage, Frames* frames) override;
  void Fail(const absl::Status& status, Frames* frames) override;
  std::string Body(const Usage& usage) override;
  bool WantsMore(size_t choice) const override;

 private:
  struct Choice {
    std::unique_ptr<AnswerReader> reader;  // nullptr: all is content
    std::vector<TokenInfo> pending;        // whose text has not been written yet
    size_t n_calls = 0;
    bool cut_call = false;  // the last one came in part
    AnswerEnd end = AnswerEnd::kStop;
    // Of an answer that nobody streams:
    std::string content, reasoning;
    std::vector<ToolCall> calls;
    std::vector<TokenInfo> tokens;
  };

  void Write(size_t index, AnswerPiece piece, Frames* frames);
  void WriteContent(size_t index, std::string text, Frames* frames);
  void WriteReasoning(size_t index, std::string text, Frames* frames);
  void WriteCall(size_t index, ToolCall call, Frames* frames);
  void Send(size_t index, Json delta, Json logprobs, Json finish_reason, Frames* frames) const;
  Json FinishReason(const Choice& choice) const;
  Json ChoiceJson(size_t index) const;

  const AnswerHead head_;
  const bool logprobs_;
  const bool parallel_calls_;
  const bool include_usage_;
  const Chunks chunks_;
  std::vector<Choice> choices_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_CHAT_WRITER_H_
