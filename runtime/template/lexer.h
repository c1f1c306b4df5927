// A template as tokens. White space around tags is dealt with here: "-" in a tag takes all of it
// away, and of blocks and comments also what a line begins with before them and the newline that
// follows them (trim_blocks and lstrip_blocks, as chat templates expect).
#ifndef TRINE_RUNTIME_TEMPLATE_LEXER_H_
#define TRINE_RUNTIME_TEMPLATE_LEXER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace trine::jinja {

struct Token {
  enum class Kind {
    kText,         // between tags
    kOpenBlock,    // {%
    kCloseBlock,   // %}
    kOpenOutput,   // {{
    kCloseOutput,  // }}
    kName,
    kString,  // with its escapes replaced
    kInteger,
    kFloat,
    kOperator,  // and brackets, commas, dots
    kEnd,
  };
  Kind kind = Kind::kEnd;
  size_t offset = 0;
  std::string text;
};

// Ends with a kEnd. INVALID_ARGUMENT with the place of what is no template.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_LEXER_H_
