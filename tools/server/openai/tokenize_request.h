// The requests of POST /tokenize and /detokenize, as llama.cpp's server has them.
#ifndef TRINE_TOOLS_SERVER_OPENAI_TOKENIZE_REQUEST_H_
#define TRINE_TOOLS_SERVER_OPENAI_TOKENIZE_REQUEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace trine::server {

struct TokenizeRequest {
  std::string text;
  bool add_special = false;   // BOS and EOS, as the model wants them
  bool parse_special = true;  // what reads like a control token is one
  bool with_pieces = false;   // with each token its text
};

// The text is the field content, or prompt.
absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view body);

struct DetokenizeRequest {
  std::vector<int32_t> tokens;  // may be none
};

absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body, int32_t vocab_size);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_TOKENIZE_REQUEST_H_
