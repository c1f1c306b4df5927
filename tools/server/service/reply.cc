#include "tools/server/service/reply.h"

#include <exception>
#include <utility>

#include "tools/server/openai/api_error.h"
#include "tools/server/openai/ids.h"

namespace trine::server {
HttpHeaders CommonHeaders() {
  return {{"X-Request-Id", RandomId("req_", 24)}, {"X-Content-Type-Options", "nosniff"}};
}

Reply::Reply(std::shared_ptr<Exchange> exchange, std::string endpoint, HttpHeaders headers,
             Metrics* metrics, ServerLog* log)
    : exchange_(std::move(exchange)),
      endpoint_(std::move(endpoint)),
      headers_(std::move(headers)),
      metrics_(metrics),
      log_(log) {
  for (auto& header : CommonHeaders()) headers_.push_back(std::move(header));
}

Reply::~Reply() {
  if (over_) return;
  try {
    Error(absl::UnavailableError(
        "the request was dropped: the server is stopping, or out of memory"));
  } catch (const std::exception&) {
    // The exchange answers 500, or cuts the connection.
  }
}

void Reply::Body(int status, std::string_view content_type, std::string_view body,
                 const HttpHeaders& more, const absl::Status& error) {
  if (over_) return;
  HttpHeaders headers = headers_;
  headers.insert(headers.end(), more.begin(), more.end());
  headers.emplace_back("Content-Type", std::string(content_type));
  Over(status, error);
  exchange_->Send(status, headers, body);
}

void Reply::Error(const absl::Status& error, HttpHeaders more) {
  if (streaming_) return EndEvents(error);
  const int status = HttpStatusOf(error);
  if (status == 503 || status == 429) more.emplace_back("Retry-After", kRetryAfter);
  if (status == 401) more.emplace_back("WWW-Authenticate", "Bearer");
  Body(status, "application/json", ErrorBody(error), more, error);
}

bool Reply::BeginEvents() {
  HttpHeaders headers = headers_;
  headers.emplace_back("Content-Type", "text/event-stream");
  headers.emplace_back("Cache-Control", "no-cache");
  headers.emplace_back("X-Accel-Buffering", "no");  // proxies must not buffer the events
  // Stays false if the client has gone: the request then still has to be counted as an error.
  streaming_ = exchange_->BeginStream(200, headers);
  return streaming_;
}

void Reply::EndEvents(const absl::Status& error) {
  if (over_) return;
  Over(error.ok() ? 200 : HttpStatusOf(error), error);
  exchange_->End();
}

void Reply::Over(int status, const absl::Status& error) {
  over_ = true;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  const bool work = request().method == "POST" || request().method == "DELETE";
  metrics_->Ended({endpoint_, status, seconds, work});
  // Monitors and pages poll every second, so these requests are no news, not even with a 503.
  const bool polled = !work && (status < 400 || status == 503);
  ServerLog::Fields fields = {{"method", request().method},
                              {"path", request().path},
                              {"client", request().peer},
                              {"status", int64_t{status}},
                              {"ms", seconds * 1000}};
  fields.insert(fields.end(), notes_.begin(), notes_.end());
  // A message about a bad request may quote it, and clients' texts must not get into the log.
  if (!error.ok() && status >= 500) fields.emplace_back("error", std::string(error.message()));
  if (!error.ok() && status < 500) {
    const std::string code = ErrorCodeOf(error);
    fields.emplace_back("error", code.empty() ? absl::StatusCodeToString(error.code()) : code);
  }
  log_->Write(polled          ? LogLevel::kDebug
              : status >= 500 ? LogLevel::kError
                              : LogLevel::kInfo,
              "request", fields);
}

}  // namespace trine::server
