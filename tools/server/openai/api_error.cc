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

absl::StatusCode CodeOfHttp(int http_status) {
  switch (http_status) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 408:
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 499:
      return absl::StatusCode::kCancelled;
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return http_status >= 500 ? absl::StatusCode::kInternal : absl::StatusCode::kInvalidArgument;
  }
}

const char* TypeOf(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "unavailable";
    default:
      return http_status >= 500 ? "server_error" : "invalid_request_error";
  }
}

const char* UsualCode(int http_status) {
  switch (http_status) {
    case 401:
      return "invalid_api_key";
    case 408:
    case 504:
      return "timeout";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_exceeded";
    case 499:
      return "cancelled";
    case 500:
      return "internal_error";
    case 503:
      return "unavailable";
    default:
      return "";
  }
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
  absl::Status status = MakeStatus(CodeOfHttp(http_status), message);
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
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kUnimplemented:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string ErrorCodeOf(const absl::Status& status) {
  if (auto code = Payload(status, kCode); code.has_value()) return *std::move(code);
  if (status.code() == absl::StatusCode::kOutOfRange) return "context_length_exceeded";
  return UsualCode(HttpStatusOf(status));
}

std::string ErrorBody(const absl::Status& status) {
  const auto param = Payload(status, kParam);
  const std::string code = ErrorCodeOf(status);
  Json error;
  error["message"] = std::string(status.message());
  error["type"] = TypeOf(HttpStatusOf(status));
  error["param"] = param.has_value() ? Json(*param) : Json();
  error["code"] = code.empty() ? Json() : Json(code);
  return Dump(Json{{"error", std::move(error)}});
}

}  // namespace trine::server
