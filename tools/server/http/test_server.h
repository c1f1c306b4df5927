// A server with a few paths, for tests. A test answers requests to /hold itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tools/server/http/http_server.h"

namespace trine::server {

inline std::string Get(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n";
}

inline std::string Post(const std::string& path, const std::string& body,
                        const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

// Returns whether the condition becomes true within the time `limit`.
template <typename Condition>
bool Soon(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class TestServer {
 public:
  explicit TestServer(HttpLimits limits = {}, std::string host = "127.0.0.1", uint16_t port = 0) {
    HttpServerOptions options;
    options.host = std::move(host);
    options.port = port;
    options.limits = limits;
    options.refuse = [](const HttpRequest& head) -> std::optional<HttpRefusal> {
      if (head.path == "/secret" && !head.Header("Key")) return HttpRefusal{401, "who are you?"};
      if (head.path == "/throws-early") throw std::runtime_error("early");
      return std::nullopt;
    };
    options.error_body = [](int status, std::string_view message) {
      return "{\"error\":{\"message\":\"" + std::string(message) +
             "\",\"code\":" + std::to_string(status) + "}}";
    };
    auto started = HttpServer::Start(
        options, [this](std::shared_ptr<Exchange> exchange) { Answer(std::move(exchange)); });
    status = started.status();
    if (started.ok()) server = *std::move(started);
  }
  ~TestServer() { server.reset(); }

  // Returns the next request to /hold, or null if none comes.
  std::shared_ptr<Exchange> Held() {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, std::chrono::seconds(20), [this] { return !held_.empty(); })) {
      return nullptr;
    }
    auto exchange = std::move(held_.front());
    held_.pop_front();
    return exchange;
  }
  uint16_t port() const { return server->port(); }

  absl::Status status;
  std::unique_ptr<HttpServer> server;

 private:
  void Answer(std::shared_ptr<Exchange> exchange) {
    const HttpRequest& request = exchange->request();
    if (request.path == "/echo") {
      exchange->Send(200, {{"Content-Type", "text/plain"}}, request.method + " " + request.body);
    } else if (request.path == "/hold") {
      std::lock_guard lock(mutex_);
      held_.push_back(std::move(exchange));
      came_.notify_all();
    } else if (request.path == "/throw") {
      throw std::runtime_error("on purpose");
    } else if (request.path == "/peer") {
      exchange->Send(200, {}, request.peer);
    } else if (request.path != "/drop") {
      exchange->Send(404, {}, request.path);
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::shared_ptr<Exchange>> held_;
};

}  // namespace trine::server
