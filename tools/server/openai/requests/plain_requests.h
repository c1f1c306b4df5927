// Reads the requests that generate nothing: POST /v1/embeddings, /tokenize and /detokenize as
// llama.cpp's server has them, and the requests of /v1/sessions (docs/server.md, "Sessions").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/server/openai/requests/generation_request.h"

namespace trine::server {

// The request of POST /v1/embeddings.
struct EmbeddingRequest {
  std::vector<PlainPrompt> inputs;  // none of them is empty
  bool base64 = false;              // true: the answer has vectors in base64; false: as numbers
  std::string user;
  std::string model;
};

// Returns INVALID_ARGUMENT, with the field's path, for a wrong field. The model determines the
// length of the vectors: any other number of dimensions is refused.
absl::StatusOr<EmbeddingRequest> ParseEmbeddingRequest(std::string_view body,
                                                       const RequestDefaults& defaults);

struct TokenizeRequest {
  std::string text;
  bool add_special = false;   // true: adds BOS and EOS, as the model wants them
  bool parse_special = true;  // true: text such as <|im_end|> becomes a control token
  bool with_pieces = false;   // true: the answer has the text of each token
};

// Reads a request. Its text is in the field content or prompt.
absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view body);

struct DetokenizeRequest {
  std::vector<int32_t> tokens;  // may be empty
};

absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body, int32_t vocab_size);

// The requests of /v1/sessions. All of these return INVALID_ARGUMENT for a body that is not a JSON
// object, or with the path of the first wrong field. The body may be empty where no field is
// required.

// POST /v1/sessions: a prompt or messages, and the sampling options for the whole life of the
// session.
absl::StatusOr<GenerationRequest> ParseSessionRequest(std::string_view body,
                                                      const RequestDefaults& defaults);
// .../append
absl::StatusOr<PlainPrompt> ParseAppendRequest(std::string_view body,
                                               const RequestDefaults& defaults);
// .../generate. Refuses fields that belong to the session. The result's prompt has no tokens.
absl::StatusOr<GenerationRequest> ParseContinueRequest(std::string_view body);
// .../checkpoint, which has no fields.
absl::Status ParseCheckpointRequest(std::string_view body);
// .../regress
absl::StatusOr<int64_t> ParseRegressRequest(std::string_view body);
// .../fork
struct ForkRequest {
  int32_t n = 1;
  std::optional<uint64_t> seed;  // of the first fork; the next ones add 1 each
  bool any_seed = false;         // the server draws one
};
absl::StatusOr<ForkRequest> ParseForkRequest(std::string_view body,
                                             const RequestDefaults& defaults);

}  // namespace trine::server
