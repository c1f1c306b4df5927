// Bytes in, requests out, one after the other. It knows no socket and no clock. What is refused has
// the status that says so, and nothing can be read after it.
#ifndef TRINE_TOOLS_SERVER_HTTP_REQUEST_READER_H_
#define TRINE_TOOLS_SERVER_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tools/server/http/answer_pipe.h"
#include "tools/server/http/http_limits.h"
#include "tools/server/http/http_request.h"

namespace trine::server {

class RequestReader {
 public:
  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();

  enum class State {
    kNothing,  // no byte of a request yet
    kHead,
    kBody,
    kDone,  // take it with Finish
    kFailed,
  };
  // Takes what it can use of `bytes` and says how many: never one that belongs to the next request.
  // What is left is given again, with what has come since.
  size_t Take(std::string_view bytes);

  State state() const { return state_; }
  // kBody: the client waits to be told to send it.
  bool awaits_continue() const { return awaits_continue_; }
  size_t body_bytes() const;
  // kBody: the request without it.
  const HttpRequest& head() const { return request_; }

  int error_status() const { return error_status_; }
  const std::string& error() const { return error_; }
  // What was asked for so far; an error in mid-request still knows whether it was a HEAD.
  const AnswerForm& form() const { return form_; }

  // Gives the request that is done, and is at the beginning of the next one.
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

#endif  // TRINE_TOOLS_SERVER_HTTP_REQUEST_READER_H_
