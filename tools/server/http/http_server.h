// A small HTTP/1.1 server: it reads whole requests, keeps clients within their limits and sends
// answers from any thread. It knows nothing of what is served.
#ifndef TRINE_TOOLS_SERVER_HTTP_HTTP_SERVER_H_
#define TRINE_TOOLS_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/server/http/exchange.h"
#include "tools/server/http/http_counters.h"
#include "tools/server/http/http_limits.h"

namespace trine::server {

// On an IO thread: it may not wait. What it throws is a 500.
using HttpHandler = std::function<void(std::shared_ptr<Exchange>)>;

struct HttpRefusal {
  int status = 400;
  std::string message;
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address, or a name: then all of its addresses
  uint16_t port = 0;               // 0: any that is free
  int threads = 2;                 // at least one
  bool reuse = true;  // of a port whose last owner's connections the system still remembers
  HttpLimits limits;
  // Asked when a request's head is there and its body is not: who is refused here, with a status
  // and a message, costs nothing more. On an IO thread: it may not wait. Null: nobody is.
  std::function<std::optional<HttpRefusal>(const HttpRequest& head)> refuse = nullptr;
  // JSON for the errors that never reach the handler; null: plain text.
  std::function<std::string(int status, std::string_view message)> error_body = nullptr;
  // Further headers of those.
  std::function<HttpHeaders()> error_headers = nullptr;
};

class HttpServer {
 public:
  // Listens when it returns. What can't be has host and port in its message.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                           HttpHandler handler);
  ~HttpServer();  // Stop
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  std::string address() const;  // as in a URL: "127.0.0.1:8080", "[::1]:8080"

  // New connections are refused by the system when it returns; idle ones close soon, the others
  // after their answer.
  void StopAccepting();
  // Waits until whatever was asked for is answered and sent. False: not within that time.
  bool Drain(std::chrono::milliseconds limit);
  // Closes all connections at once, and lets the threads end. Exchanges that are held have lost
  // their clients. From any thread but the handler's; when it returns nothing is left.
  void Stop();

  HttpCounters counters() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_HTTP_SERVER_H_
