// Errors as the API shows them. Everywhere else they are statuses; what the API needs beyond a code
// and a message travels in the status itself.
#ifndef TRINE_TOOLS_SERVER_OPENAI_API_ERROR_H_
#define TRINE_TOOLS_SERVER_OPENAI_API_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace trine::server {

// An error of a request's field: INVALID_ARGUMENT with the field's path, as "messages[0].content".
absl::Status ParamError(std::string_view param, std::string_view message,
                        std::string_view code = "");

// The same status with the field it is about, where none is named yet. For what is found out behind
// the parser, as by the compiler of a schema. OK stays OK.
absl::Status WithParam(absl::Status status, std::string_view param);

// An error that HTTP has a number of its own for, as 405 or 413. `code` is the API's, "" for none.
absl::Status HttpError(int http_status, std::string_view message, std::string_view code = "");

// What the server was told to do without, by `flag`, is not there.
absl::Status SwitchedOff(std::string_view flag);

// 400, 401, 403, 404, 408, 413, 429, 499, 500, 503, 504, or what HttpError was given; 200 of OK.
// OUT_OF_RANGE is a context that is too short, and the client's doing; RESOURCE_EXHAUSTED is 429:
// more work than there is room for.
int HttpStatusOf(const absl::Status& status);

// {"error":{"message","type","param","code"}}. `status` is not OK.
std::string ErrorBody(const absl::Status& status);

// The API's own word for what happened, as "context_length_exceeded"; "" where it has none.
std::string ErrorCodeOf(const absl::Status& status);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_API_ERROR_H_
