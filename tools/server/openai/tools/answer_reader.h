// Divides the text that a model writes into content, reasoning and tool calls. Takes the text in
// pieces, which may be cut anywhere. Passes content on at once, except for text that may begin a
// call. A call that can't be read becomes content. If the text ends inside a call, gives the part
// of the call that has come, or nothing if its name is not complete; a call's marks are never
// content.
//
// One thread at a time may use a reader.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/openai/tools/tool_family.h"

namespace trine::server {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // a JSON object
  bool cut = false;       // true: the text ended inside the call, so the JSON may be incomplete
};

struct AnswerPiece {
  enum class Kind { kContent, kReasoning, kCall };
  Kind kind = Kind::kContent;
  std::string text;  // content or reasoning, in whole characters; not empty
  ToolCall call;
};

// The place at which the model's text begins: after the template's prompt, or inside something that
// the opening after the prompt has begun (AnswerPlan).
struct AnswerStart {
  enum class Kind {
    kFree,       // after the prompt
    kContent,    // in content: everything is content
    kCall,       // in the JSON of a call, or of a list with one call
    kArguments,  // in the arguments of the tool `name`
  };
  Kind kind = Kind::kFree;
  std::string name;
};

class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  // Reads the next piece. `text` has whole characters, and control tokens as text. Appends finished
  // pieces of the answer to *out.
  virtual void Push(std::string_view text, std::vector<AnswerPiece>* out) = 0;
  // Ends the text. Appends everything that was held back to *out.
  virtual void Finish(std::vector<AnswerPiece>* out) = 0;
};

// Returns a reader. It takes all text for content if no tools may be called and the model has no
// channels.
std::unique_ptr<AnswerReader> NewAnswerReader(ToolFamily family, const GenerationRequest& request,
                                              const AnswerStart& start);

// Returns whether the answer may need a reader. The text must then show control tokens
// (SessionOptions::show_special), because the marks of calls may be such tokens.
bool NeedsAnswerReader(ToolFamily family, const GenerationRequest& request);

}  // namespace trine::server
