// Reads tool calls in JSON and in Qwen3-Coder's form, and finds the marks around them in a text
// that comes in pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "tools/server/openai/tools/answer_reader.h"

namespace trine::server {

inline bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

// Removes white space from the front of the text.
inline void SkipSpace(std::string_view* text) {
  while (!text->empty() && IsSpace(text->front())) text->remove_prefix(1);
}

// A mark is a text that begins or ends a call.
struct FoundMark {
  size_t at = std::string_view::npos;  // npos: no mark was found
  std::string_view mark;
};

// Returns the mark that comes first in the text.
FoundMark FindMark(std::string_view text, std::span<const std::string_view> marks);

// Returns the number of bytes at the text's end that may begin a mark.
size_t HeldBytes(std::string_view text, std::span<const std::string_view> marks);

// Returns whether the text is the beginning of a mark, but not all of it.
bool BeginsMark(std::string_view text, std::span<const std::string_view> marks);

// Finds the end of a JSON object or array that comes in pieces. Looks at brackets and strings only,
// so the text between them may still be wrong.
class JsonExtent {
 public:
  // Returns whether the value ends with this character. Must not be called after the end.
  bool Push(char c);
  bool in_string() const { return in_string_; }

 private:
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

// Returns the calls in `json`, which is an object or an array of objects. Each has a name and, as
// `arguments` or `parameters`, an object, a string with the JSON of an object, or nothing. Returns
// no calls for anything else. Ids have the family's form.
std::vector<ToolCall> ReadCalls(std::string_view json, ToolFamily family);

// Reads calls from JSON that ended too early. The last call has its name and the part of its
// arguments that has come. Leaves it out if its name is not complete.
std::vector<ToolCall> ReadCutCalls(std::string_view json, ToolFamily family);

// Returns the arguments of a call, or "" if they are not an object.
std::string ReadArguments(std::string_view json);

// Qwen3-Coder writes a call as <function=name><parameter=x>value</parameter></function>.
inline constexpr std::string_view kFunctionBegin = "<function=";
inline constexpr std::string_view kFunctionEnd = "</function>";

struct FunctionText {
  enum class State {
    kWhole,
    kCut,    // it has not ended yet: the call has the part that has come, perhaps without a name
    kWrong,  // it is not a function
  };
  State state = State::kWrong;
  ToolCall call;  // without an id
};

// Reads a call in Qwen3-Coder's form. `text` must begin with kFunctionBegin; the text of a whole
// call ends with kFunctionEnd. A value has the type that its tool's schema says, or is a string if
// the schema says nothing.
FunctionText ReadFunction(std::string_view text, const std::vector<Tool>& tools);

// Returns a reader for all families but gpt-oss's: these put a mark before a call, or nothing. If
// `behind_mark` is true, the text begins after the mark of a call.
std::unique_ptr<AnswerReader> NewCallReader(ToolFamily family, const std::vector<Tool>& tools,
                                            bool behind_mark);

}  // namespace trine::server
