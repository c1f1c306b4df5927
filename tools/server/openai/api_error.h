// Converts errors to the form that the API shows. Everywhere else errors are statuses; a status
// also carries what the API needs besides code and message.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace trine::server {

// Returns the error of a request's field: INVALID_ARGUMENT with the field's path, such as
// "messages[0].content".
absl::Status ParamError(std::string_view param, std::string_view message,
                        std::string_view code = "");

// Adds the field that an error is about, unless the error has one already. For errors that are
// found after parsing, such as by the compiler of a schema. OK stays OK.
absl::Status WithParam(absl::Status status, std::string_view param);

// Returns an error with this HTTP status, such as 405 or 413. `code` is the API's; "": none.
absl::Status HttpError(int http_status, std::string_view message, std::string_view code = "");

// Returns the error for a feature that `flag` has switched off.
absl::Status SwitchedOff(std::string_view flag);

// Returns the HTTP status: 200 for OK, the argument of HttpError, or 400, 401, 403, 404, 429, 499,
// 500, 503 or 504. OUT_OF_RANGE means that the context is too short, which is the client's error.
// RESOURCE_EXHAUSTED means that there is no room for more work, which is 429.
int HttpStatusOf(const absl::Status& status);

// Returns {"error":{"message","type","param","code"}}. `status` must not be OK.
std::string ErrorBody(const absl::Status& status);

// Returns the API's code, such as "context_length_exceeded", or "" if there is none.
std::string ErrorCodeOf(const absl::Status& status);

}  // namespace trine::server
