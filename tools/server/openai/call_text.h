// Tool calls in JSON: where one ends, and what it says.
#ifndef TRINE_TOOLS_SERVER_OPENAI_CALL_TEXT_H_
#define TRINE_TOOLS_SERVER_OPENAI_CALL_TEXT_H_

#include <string_view>
#include <vector>

#include "tools/server/openai/answer_reader.h"

namespace trine::server {

// Finds the end of an object or array that comes in pieces. Only brackets and strings are looked
// at: what is between them may still be wrong.
class JsonExtent {
 public:
  // Whether the value ends with this character. Not to be called behind the end.
  bool Push(char c);
  bool in_string() const { return in_string_; }

 private:
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

// The calls in `json`: an object, or an array of them, each with a name and, under `arguments` or
// `parameters`, an object, the JSON of one in a string, or nothing. Empty for anything else. Calls
// have ids of the family's.
std::vector<ToolCall> ReadCalls(std::string_view json, ToolFamily family);

// The same of a text that ended too early: of the last call its name and what there is of its
// arguments. Without that call, where the name had not come yet.
std::vector<ToolCall> ReadCutCalls(std::string_view json, ToolFamily family);

// The arguments of a call by themselves: "" where they are no object.
std::string ReadArguments(std::string_view json);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_CALL_TEXT_H_
