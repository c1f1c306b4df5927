// The requests of /v1/sessions (docs/server.md, "Sessions").
#ifndef TRINE_TOOLS_SERVER_OPENAI_SESSION_REQUEST_H_
#define TRINE_TOOLS_SERVER_OPENAI_SESSION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

// All of them: INVALID_ARGUMENT for a body that is no JSON object, or with the path of the first
// field that is wrong. Where nothing is needed the body may be empty.

// POST /v1/sessions: one prompt, or messages, and how tokens are chosen for as long as it lives.
absl::StatusOr<GenerationRequest> ParseSessionRequest(std::string_view body,
                                                      const RequestDefaults& defaults);
// .../append
absl::StatusOr<PlainPrompt> ParseAppendRequest(std::string_view body,
                                               const RequestDefaults& defaults);
// .../generate. What the session itself says is refused here. Its prompt is one without tokens.
absl::StatusOr<GenerationRequest> ParseContinueRequest(std::string_view body);
// .../checkpoint: there is nothing to say.
absl::Status ParseCheckpointRequest(std::string_view body);
// .../regress
absl::StatusOr<int64_t> ParseRegressRequest(std::string_view body);
// .../fork
struct ForkRequest {
  int32_t n = 1;
  std::optional<uint64_t> seed;  // of the first; the others have those behind it
  bool any_seed = false;         // one is to be drawn
};
absl::StatusOr<ForkRequest> ParseForkRequest(std::string_view body,
                                             const RequestDefaults& defaults);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_SESSION_REQUEST_H_
