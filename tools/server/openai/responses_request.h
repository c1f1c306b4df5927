// The request of POST /v1/responses.
#ifndef TRINE_TOOLS_SERVER_OPENAI_RESPONSES_REQUEST_H_
#define TRINE_TOOLS_SERVER_OPENAI_RESPONSES_REQUEST_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

// INVALID_ARGUMENT for a body that is no JSON object, or with the path of the first field that is
// wrong. Fields that are not known are passed over.
absl::StatusOr<GenerationRequest> ParseResponsesRequest(std::string_view body,
                                                        const RequestDefaults& defaults);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_RESPONSES_REQUEST_H_
