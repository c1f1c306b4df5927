#include "tools/server/openai/api_error.h"

#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

constexpr char kParam[] = "trine.server/param";
constexpr char kCode[] = "trine.server/code";
constexpr char kHttpStatus[] = "trine.server/http_status";

std::optional<std::string> Payload(const absl::Status& status, const char* key) {
  const absl::optional<absl::Cord> payload = status.GetPayload(key);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

void SetPayload(absl::Status* status, const char* key, std::string_view text) {
  status->SetPayload(key, absl::Cord(absl::string_view(text.data(), text.size())));
}

absl::Status MakeStatus(absl::StatusCode code, std::string_view message) {
  return absl::Status(code, absl::string_view(message.data(), message.size()));
}

// The API's names for an HTTP status.
struct HttpRow {
  int http;
  absl::StatusCode code;
  const char* type;
  const char* usual_code;
};

// A code that several rows have stands for the last of them.
constexpr HttpRow kHttpRows[] = {
    {400, absl::StatusCode::kInvalidArgument, "invalid_request_error", ""},
    {401, absl::StatusCode::kUnauthenticated, "authentication_error", "invalid_api_key"},
    {403, absl::StatusCode::kPermissionDenied, "permission_error", ""},
    {404, absl::StatusCode::kNotFound, "not_found_error", ""},
    {408, absl::StatusCode::kDeadlineExceeded, "invalid_request_error", "timeout"},
    {429, absl::StatusCode::kResourceExhausted, "rate_limit_error", "rate_limit_exceeded"},
    {499, absl::StatusCode::kCancelled, "invalid_request_error", "cancelled"},
    {500, absl::StatusCode::kInternal, "server_error", "internal_error"},
    {503, absl::StatusCode::kUnavailable, "unavailable", "unavailable"},
    {504, absl::StatusCode::kDeadlineExceeded, "server_error", "timeout"},
};

HttpRow RowOf(int http) {
  for (const HttpRow& row : kHttpRows) {
    if (row.http == http) return row;
  }
  if (http >= 500) return {http, absl::StatusCode::kInternal, "server_error", ""};
  return {http, absl::StatusCode::kInvalidArgument, "invalid_request_error",
          http == 413 ? "request_too_large" : ""};
}

}  // namespace

absl::Status ParamError(std::string_view param, std::string_view message, std::string_view code) {
  absl::Status status = MakeStatus(absl::StatusCode::kInvalidArgument, message);
  if (!param.empty()) SetPayload(&status, kParam, param);
  if (!code.empty()) SetPayload(&status, kCode, code);
  return status;
}

absl::Status WithParam(absl::Status status, std::string_view param) {
  if (status.ok() || param.empty() || status.GetPayload(kParam).has_value()) return status;
  SetPayload(&status, kParam, param);
  return status;
}

absl::Status HttpError(int http_status, std::string_view message, std::string_view code) {
  absl::Status status = MakeStatus(RowOf(http_status).code, message);
  SetPayload(&status, kHttpStatus, absl::StrCat(http_status));
  if (!code.empty()) SetPayload(&status, kCode, code);
  return status;
}

absl::Status SwitchedOff(std::string_view flag) {
  return HttpError(404, absl::StrCat("the server was started with ", std::string(flag)),
                   "switched_off");
}

int HttpStatusOf(const absl::Status& status) {
  const auto given = Payload(status, kHttpStatus);
  if (int number = 0; given.has_value() && absl::SimpleAtoi(*given, &number)) return number;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kUnimplemented:
      return 400;
    case absl::StatusCode::kAborted:
      return 503;
    default:
      break;
  }
  int http = 500;
  for (const HttpRow& row : kHttpRows) {
    if (row.code == status.code()) http = row.http;
  }
  return http;
}

std::string ErrorCodeOf(const absl::Status& status) {
  if (auto code = Payload(status, kCode); code.has_value()) return *std::move(code);
  if (status.code() == absl::StatusCode::kOutOfRange) return "context_length_exceeded";
  return RowOf(HttpStatusOf(status)).usual_code;
}

std::string ErrorBody(const absl::Status& status) {
  const auto param = Payload(status, kParam);
  const std::string code = ErrorCodeOf(status);
  const Json error{{"message", std::string(status.message())},
                   {"type", RowOf(HttpStatusOf(status)).type},
                   {"param", param.has_value() ? Json(*param) : Json()},
                   {"code", code.empty() ? Json() : Json(code)}};
  return Dump(Json{{"error", error}});
}

}  // namespace trine::server
