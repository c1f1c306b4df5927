// Tells what a model writes apart: content, reasoning, tool calls. Fed with pieces of text, however
// they are cut; content is passed on at once, but for what may be the beginning of a call. A call
// that can't be read is content after all. One that the text's end cuts short is a call as far as
// it came, or nothing where that is not even its name: its marks are no content.
//
// One thread at a time.
#ifndef TRINE_TOOLS_SERVER_OPENAI_ANSWER_READER_H_
#define TRINE_TOOLS_SERVER_OPENAI_ANSWER_READER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/server/openai/generation_request.h"
#include "tools/server/openai/tool_family.h"

namespace trine::server {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON of an object
  bool cut = false;       // the text ended before it did: so may the arguments, anywhere
};

struct AnswerPiece {
  enum class Kind { kContent, kReasoning, kCall };
  Kind kind = Kind::kContent;
  std::string text;  // of content or reasoning: not empty, whole characters
  ToolCall call;
};

// Where the model is when it begins: behind the prompt of its template, or behind an opening too.
struct AnswerStart {
  enum class Kind {
    kFree,
    kContent,    // whatever comes is content
    kCall,       // the JSON of a call, or a list with it
    kArguments,  // of the tool `name`
  };
  Kind kind = Kind::kFree;
  std::string name;
};

class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  // `text` has whole characters, with control tokens written out.
  virtual void Push(std::string_view text, std::vector<AnswerPiece>* out) = 0;
  // The text has ended: what was held back.
  virtual void Finish(std::vector<AnswerPiece>* out) = 0;
};

// nullptr where all text is content: no tools may be called, and the model has no channels.
std::unique_ptr<AnswerReader> NewAnswerReader(ToolFamily family, const GenerationRequest& request,
                                              const AnswerStart& start);

// Whether NewAnswerReader gives one. The text must then show control tokens
// (SessionOptions::show_special): marks of calls may be such.
bool NeedsAnswerReader(ToolFamily family, const GenerationRequest& request);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_ANSWER_READER_H_
