// The answer of POST /v1/responses: one message of text, as an object or as the events of a stream.
#ifndef TRINE_TOOLS_SERVER_OPENAI_RESPONSES_WRITER_H_
#define TRINE_TOOLS_SERVER_OPENAI_RESPONSES_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/server/openai/answer_writer.h"
#include "tools/server/openai/json.h"

namespace trine::server {

class ResponsesWriter : public AnswerWriter {
 public:
  ResponsesWriter(const GenerationRequest& request, const AnswerHead& head, ToolFamily family,
                  const AnswerStart& start);

  void Begin(Frames* frames) override;
  void Text(size_t choice, std::string_view text, std::span<const TokenInfo> tokens,
            Frames* frames) override;
  void Finish(size_t choice, AnswerEnd end, Frames* frames) override;
  void End(const Usage& usage, Frames* frames) override;
  void Fail(const absl::Status& status, Frames* frames) override;
  std::string Body(const Usage& usage) override;
  bool WantsMore(size_t) const override { return true; }

 private:
  // An event of the response as a whole, or of its message.
  void SendResponse(const char* type, Json response, Frames* frames);
  void SendItem(const char* type, Json event, Frames* frames);
  void Send(const char* type, Json event, Frames* frames);

  void Write(const std::vector<AnswerPiece>& pieces, Frames* frames);
  const char* EndStatus() const { return end_ == AnswerEnd::kStop ? "completed" : "incomplete"; }
  Json Part() const;
  Json Message(const char* status) const;
  Json Ended(const Usage& usage) const;

  Json response_;  // as it is at the beginning
  const std::string message_id_;
  std::unique_ptr<AnswerReader> reader_;
  std::string text_;
  AnswerEnd end_ = AnswerEnd::kStop;
  int64_t sequence_number_ = 0;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_RESPONSES_WRITER_H_
