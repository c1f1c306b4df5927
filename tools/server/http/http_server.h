// A small HTTP/1.1 server. Reads whole requests, holds clients to their limits and sends answers
// from any thread. Knows nothing about what is served.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/server/http/answer_pipe.h"
#include "tools/server/http/request_reader.h"

namespace trine::server {

struct HttpCounters {
  uint64_t open = 0;           // connections that are open now, except those being refused
  uint64_t accepted = 0;       // all connections so far
  uint64_t refused = 0;        // accepted connections that were over the limits
  uint64_t accept_errors = 0;  // connections that could not be accepted, for lack of files say
  uint64_t requests = 0;       // requests that reached the handler
  uint64_t bad_requests = 0;   // requests that were answered with an error before the handler
  uint64_t timeouts = 0;       // requests that came too slowly, and clients that took nothing
  uint64_t gone = 0;           // clients that left before their answer was sent
  uint64_t bytes_in = 0, bytes_out = 0;
};

// Answers a request. Called on an IO thread, so it must not wait. If it throws, the request is
// answered 500.
using HttpHandler = std::function<void(std::shared_ptr<Exchange>)>;

struct HttpRefusal {
  int status = 400;
  std::string message;
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address; or a name, for all addresses of that name
  uint16_t port = 0;               // 0: any free port
  int threads = 2;                 // at least 1
  bool reuse = true;  // true: takes a port even if connections of its last owner still linger
  HttpLimits limits;
  // Called when the head of a request has come, before the body: a request that is refused here
  // costs nothing more. Called on an IO thread, so it must not wait. null: no request is refused.
  std::function<std::optional<HttpRefusal>(const HttpRequest& head)> refuse = nullptr;
  // Returns the JSON body of an error that never reaches the handler; null: plain text.
  std::function<std::string(int status, std::string_view message)> error_body = nullptr;
  // Returns more headers for these errors.
  std::function<HttpHeaders()> error_headers = nullptr;
};

class HttpServer {
 public:
  // Starts a server, which listens when Start returns. Errors name host and port.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                           HttpHandler handler);
  ~HttpServer();  // calls Stop
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  std::string address() const;  // as in a URL: "127.0.0.1:8080", "[::1]:8080"

  // Accepts no more connections: when it returns, the system refuses them. Idle connections close
  // soon, busy connections after their answer.
  void StopAccepting();
  // Waits until all requests are answered and the answers sent. Returns false if that takes longer
  // than `limit`.
  bool Drain(std::chrono::milliseconds limit);
  // Closes all connections at once and ends all threads. The clients of exchanges that are still
  // held count as gone. A handler must not call it.
  void Stop();

  HttpCounters counters() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trine::server
