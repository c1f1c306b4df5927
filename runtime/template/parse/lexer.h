// Splits a template into tokens and removes white space around tags. A "-" in a tag removes all
// white space on its side. Blocks and comments also remove the spaces before them at the beginning
// of a line, and the newline after them (lstrip_blocks and trim_blocks, as chat templates expect).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine::jinja {

struct Token {
  enum class Kind {
    kText,         // text between tags
    kOpenBlock,    // {%
    kCloseBlock,   // %}
    kOpenOutput,   // {{
    kCloseOutput,  // }}
    kName,
    kString,  // with its escapes replaced
    kInteger,
    kFloat,
    kOperator,  // also brackets, commas, dots
    kEnd,
  };
  Kind kind = Kind::kEnd;
  size_t offset = 0;
  std::string text;
};

// Returns the tokens, of which the last is kEnd. Fails with INVALID_ARGUMENT, with the place, if
// the template is malformed.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

// Returns the status with its place in `source` before the message and the source's line after it:
//   chat template, line 3, column 8: there is no filter "trin", in: {{ x | trin }}
absl::Status AtPlace(std::string_view source, size_t offset, const absl::Status& status);

}  // namespace trine::jinja
