// The reader of gpt-oss's channels: analysis is reasoning, messages to functions are calls, and the
// rest is content.
#ifndef TRINE_TOOLS_SERVER_OPENAI_HARMONY_READER_H_
#define TRINE_TOOLS_SERVER_OPENAI_HARMONY_READER_H_

#include <string>
#include <string_view>
#include <vector>

#include "tools/server/openai/answer_reader.h"

namespace trine::server {

class HarmonyReader : public AnswerReader {
 public:
  HarmonyReader(bool may_call, const AnswerStart& start);

  void Push(std::string_view text, std::vector<AnswerPiece>* out) override;
  void Finish(std::vector<AnswerPiece>* out) override;

 private:
  // Each takes what it can from the front of rest_, and says whether there is more to be done
  // without further text.
  bool ReadHeader();
  bool ReadBody(std::vector<AnswerPiece>* out);

  void BeginBody(std::string_view header);
  void AddToBody(std::string_view text, std::vector<AnswerPiece>* out);
  // `cut`: the text ends, and the body has no end of its own.
  void EndBody(bool cut, std::vector<AnswerPiece>* out);

  const bool may_call_;
  bool in_body_;
  AnswerPiece::Kind kind_ = AnswerPiece::Kind::kContent;  // of the body
  std::string name_;                                      // of the function called
  std::string arguments_;
  std::string rest_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_HARMONY_READER_H_
