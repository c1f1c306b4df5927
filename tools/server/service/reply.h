// One request's answer, as the API gives it: headers that every answer has, errors in the API's
// shape, and a line of the log and the metrics when it is over. One thread at a time.
#ifndef TRINE_TOOLS_SERVER_SERVICE_REPLY_H_
#define TRINE_TOOLS_SERVER_SERVICE_REPLY_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tools/server/http/exchange.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/server_log.h"

namespace trine::server {

// What every answer has: a name for it, to be found again by, and that it is what it says.
HttpHeaders CommonHeaders();

class Reply {
 public:
  using Clock = std::chrono::steady_clock;

  // `endpoint`: the route, for metrics. `headers`: for every answer to this client.
  Reply(std::shared_ptr<Exchange> exchange, std::string endpoint, HttpHeaders headers,
        Metrics* metrics, ServerLog* log);
  // Nobody has answered: something was thrown, or the server is on its way out.
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  const HttpRequest& request() const { return exchange_->request(); }
  Exchange& exchange() const { return *exchange_; }
  Clock::time_point begin() const { return begin_; }

  void Body(int status, std::string_view content_type, std::string_view body,
            const HttpHeaders& more = {});
  void Json(std::string_view body) { Body(200, "application/json", body); }
  void Error(const absl::Status& error, const HttpHeaders& more = {});

  // Server-sent events. False: the client has gone.
  bool BeginEvents();
  bool Write(std::string_view frames) { return exchange_->Write(frames); }
  // `error`: what ended them before their end; it is in the log, and the client was told in a
  // frame.
  void EndEvents(const absl::Status& error);
  bool streaming() const { return streaming_; }

  // For the log.
  void Note(std::string_view key, ServerLog::Value value) {
    notes_.emplace_back(key, std::move(value));
  }

 private:
  // Before the last byte goes out: who has an answer finds it counted.
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

#endif  // TRINE_TOOLS_SERVER_SERVICE_REPLY_H_
