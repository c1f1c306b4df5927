// The reader of families that put a mark before a call, or nothing at all: every one but gpt-oss's.
#ifndef TRINE_TOOLS_SERVER_OPENAI_CALL_READER_H_
#define TRINE_TOOLS_SERVER_OPENAI_CALL_READER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/server/openai/answer_reader.h"
#include "tools/server/openai/call_text.h"

namespace trine::server {

class CallReader : public AnswerReader {
 public:
  // `behind_mark`: the text begins inside a call.
  CallReader(ToolFamily family, const std::vector<Tool>& tools, bool behind_mark);

  void Push(std::string_view text, std::vector<AnswerPiece>* out) override;
  void Finish(std::vector<AnswerPiece>* out) override;

 private:
  enum class State {
    kText,      // content
    kMark,      // behind a mark: white space, or Mistral's name of the call
    kJson,      // inside a call
    kFunction,  // inside one of Qwen3-Coder's
    kAfter,     // behind a call: the end mark, another call, or content
  };

  // Each takes what it can from the front of rest_, and says whether there is more to be done
  // without further text.
  bool ReadText(std::vector<AnswerPiece>* out);
  bool ReadMark(std::vector<AnswerPiece>* out);
  bool ReadJson(std::vector<AnswerPiece>* out);
  bool ReadFunctionText(std::vector<AnswerPiece>* out);
  bool ReadHead(std::vector<AnswerPiece>* out);  // the name before the JSON, where it stands there
  bool ReadAfter();

  void SkipSpace();
  bool BeginJson(std::string_view name);
  bool EndCall(std::vector<AnswerPiece>* out);
  bool GiveUp(std::vector<AnswerPiece>* out);  // it was no call
  // The text ended inside a call. False: as far as one can see, it was none.
  bool EndInCall(std::vector<AnswerPiece>* out);
  void GiveCalls(std::vector<ToolCall> calls, std::vector<AnswerPiece>* out);
  void Content(std::string_view text, std::vector<AnswerPiece>* out);
  bool IsKnown(const std::vector<ToolCall>& calls) const;

  const ToolFamily family_;
  const std::vector<Tool> tools_;
  State state_;
  std::string rest_;         // not looked at yet, or not to be told apart yet
  std::string raw_;          // the call under way, from its mark on
  size_t mark_bytes_ = 0;    // of raw_
  size_t json_at_ = 0;       // in raw_
  std::string name_;         // of the call, where it stands before the JSON
  JsonExtent extent_;        // of the JSON
  bool marked_;              // the call under way has a mark
  bool at_begin_ = true;     // no content since the beginning, or since a call
  bool after_call_ = false;  // since a call
  std::string space_;        // at_begin_: dropped where a call follows
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_CALL_READER_H_
