// Answers one request in the API's form. Adds the headers of every answer, writes errors as JSON,
// and counts and logs the request at the end. One thread at a time may use it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tools/server/http/answer_pipe.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/server_log.h"

namespace trine::server {

// The number of seconds that clients are asked to wait before they try again.
inline constexpr char kRetryAfter[] = "2";

// Returns the headers of every answer: a request id, by which the log can be searched, and a ban on
// guessing the content type.
HttpHeaders CommonHeaders();

class Reply {
 public:
  using Clock = std::chrono::steady_clock;

  // `endpoint` is the route's name for metrics. `headers` are added to the answer.
  Reply(std::shared_ptr<Exchange> exchange, std::string endpoint, HttpHeaders headers,
        Metrics* metrics, ServerLog* log);
  // Answers UNAVAILABLE if there was no answer: something was thrown, or the server is stopping.
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  const HttpRequest& request() const { return exchange_->request(); }
  Exchange& exchange() const { return *exchange_; }
  Clock::time_point begin() const { return begin_; }

  // `error` is for the log.
  void Body(int status, std::string_view content_type, std::string_view body,
            const HttpHeaders& more = {}, const absl::Status& error = absl::OkStatus());
  void Json(std::string_view body) { Body(200, "application/json", body); }
  void Error(const absl::Status& error, HttpHeaders more = {});

  // Begins a stream of server-sent events. Returns false if the client has gone.
  bool BeginEvents();
  bool Write(std::string_view frames) { return exchange_->Write(frames); }
  // Ends the stream. `error` says why it ended early; it goes to the log and the metrics. The
  // caller must have told the client, in a frame.
  void EndEvents(const absl::Status& error);
  bool streaming() const { return streaming_; }

  // Adds a field to the request's line in the log.
  void Note(std::string_view key, ServerLog::Value value) {
    notes_.emplace_back(key, std::move(value));
  }

 private:
  // Counts and logs the request. Called before the last byte is sent, so that a client that has its
  // answer finds it counted.
  void Over(int status, const absl::Status& error);

  const std::shared_ptr<Exchange> exchange_;
  const std::string endpoint_;
  HttpHeaders headers_;
  Metrics* const metrics_;
  ServerLog* const log_;
  const Clock::time_point begin_ = Clock::now();
  ServerLog::Fields notes_;
  bool streaming_ = false;
  bool over_ = false;
};

}  // namespace trine::server
