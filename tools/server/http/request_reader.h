// Turns bytes into requests, one after the other. Knows no socket and no clock. After a request
// with an error nothing more can be read.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tools/server/http/answer_pipe.h"
#include "tools/server/http/http_request.h"

namespace trine::server {

// What clients may take of the server: bytes, time and connections.
struct HttpLimits {
  size_t header_bytes = size_t{16} << 10;  // request line and all headers together
  size_t body_bytes = size_t{8} << 20;
  size_t all_body_bytes = size_t{256} << 20;  // bodies being read, of all connections

  // For the head of a request, from its first byte, or for the first one from the connection's
  // beginning.
  std::chrono::milliseconds header_time{10'000};
  // For a body. Each `body_rate` bytes of it that have come add a second.
  std::chrono::milliseconds body_time{60'000};
  size_t body_rate = size_t{16} << 10;
  std::chrono::milliseconds idle_time{75'000};   // between two requests
  std::chrono::milliseconds write_time{30'000};  // for the client to take one more byte
  // For the client to close after the last answer. If the server closed first, an answer that the
  // client has not read yet could be lost.
  std::chrono::milliseconds linger_time{3'000};

  size_t connections = 512;
  size_t connections_per_address = 256;  // an IPv6 address counts by its first 64 bits
  size_t refused_connections = 64;       // answered with 503; further ones are just closed

  size_t pipelined_bytes = size_t{64} << 10;  // of further requests, while one is answered
  size_t waiting_bytes = size_t{1} << 20;     // of an answer, until the client takes them
};

class RequestReader {
 public:
  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();

  enum class State {
    kNothing,  // no byte of a request yet
    kHead,
    kBody,
    kDone,  // ready for Finish
    kFailed,
  };
  // Uses a part of `bytes` and returns the part's length. Never uses a byte of the next request.
  // The caller passes the rest again, followed by the bytes that have come since.
  size_t Take(std::string_view bytes);

  State state() const { return state_; }
  // In kBody, returns whether the client waits for "100 Continue" before it sends the body.
  bool awaits_continue() const { return awaits_continue_; }
  size_t body_bytes() const;
  // In kBody, returns the request without its body.
  const HttpRequest& head() const { return request_; }

  // In kFailed, the HTTP status and the message of the error.
  int error_status() const { return error_status_; }
  const std::string& error() const { return error_; }
  // Returns the answer's form as far as it is known. Even after an error it says whether the
  // request is a HEAD.
  const AnswerForm& form() const { return form_; }

  // Returns the finished request and begins the next one.
  HttpRequest Finish();

 private:
  struct Parser;
  size_t TakeHead(std::string_view bytes);
  size_t TakeBody(std::string_view bytes);
  void ReadHead();
  void CheckFraming();
  void Fail(int status, std::string why);

  const HttpLimits limits_;
  std::unique_ptr<Parser> parser_;
  State state_ = State::kNothing;
  size_t head_bytes_ = 0;
  bool awaits_continue_ = false;
  AnswerForm form_;
  HttpRequest request_;
  int error_status_ = 0;
  std::string error_;
};

}  // namespace trine::server
