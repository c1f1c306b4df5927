// The request of POST /v1/embeddings.
#ifndef TRINE_TOOLS_SERVER_OPENAI_EMBEDDING_REQUEST_H_
#define TRINE_TOOLS_SERVER_OPENAI_EMBEDDING_REQUEST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

struct EmbeddingRequest {
  std::vector<PlainPrompt> inputs;  // none of them empty
  bool base64 = false;              // else numbers
  std::string user;
  std::string model;
};

// INVALID_ARGUMENT with the field that is wrong. Vectors are as long as the model makes them:
// another number of dimensions is refused.
absl::StatusOr<EmbeddingRequest> ParseEmbeddingRequest(std::string_view body,
                                                       const RequestDefaults& defaults);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_EMBEDDING_REQUEST_H_
