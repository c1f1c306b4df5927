// Tool calls as Qwen3-Coder writes them: <function=name><parameter=x>value</parameter></function>.
#ifndef TRINE_TOOLS_SERVER_OPENAI_FUNCTION_TEXT_H_
#define TRINE_TOOLS_SERVER_OPENAI_FUNCTION_TEXT_H_

#include <string_view>
#include <vector>

#include "tools/server/openai/answer_reader.h"

namespace trine::server {

inline constexpr std::string_view kFunctionBegin = "<function=";
inline constexpr std::string_view kFunctionEnd = "</function>";

struct FunctionText {
  enum class State {
    kWhole,
    kCut,    // it has no end yet: the call is what there is, without a name where that is not there
    kWrong,  // it is none
  };
  State state = State::kWrong;
  ToolCall call;  // without an id
};

// `text` begins with kFunctionBegin; where it is whole it ends with kFunctionEnd. A value is what
// the schema of its tool says, and text where that says nothing else.
FunctionText ReadFunction(std::string_view text, const std::vector<Tool>& tools);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_FUNCTION_TEXT_H_
