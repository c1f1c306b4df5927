// One request and its answer, kept by whoever answers. Thread-safe: a request may come on one
// thread and be answered on another. It outlives the connection, and the server: then its client
// has gone, and what is sent goes nowhere.
#ifndef TRINE_TOOLS_SERVER_HTTP_EXCHANGE_H_
#define TRINE_TOOLS_SERVER_HTTP_EXCHANGE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tools/server/http/answer_pipe.h"
#include "tools/server/http/http_request.h"

namespace trine::server {

class Exchange {
 public:
  Exchange(HttpRequest request, std::shared_ptr<AnswerPipe> pipe);
  // Without an answer: 500. With a stream that has no end: the connection is cut, so that the
  // client sees that something is missing.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }
  // For the handler, who has read it: nobody else may look at the request meanwhile.
  void ForgetBody() { std::string().swap(request_.body); }

  // A whole answer; never waits. Lengths, Date and Connection are added, a body is left out where
  // the request or the status has none. False: it was answered before, or the connection is no
  // more. A client that is gone() may have closed one direction only: it is sent this all the same.
  bool Send(int status, const HttpHeaders& headers, std::string_view body);

  // An answer in parts. False: the client has gone, or the request was answered before.
  bool BeginStream(int status, const HttpHeaders& headers);
  // Waits while too much is waiting for the client, so not for an IO thread. False: it has gone. It
  // counts as gone when it takes nothing for HttpLimits::write_time.
  bool Write(std::string_view bytes);
  void End();

  // Whether the client has closed its connection, or been cut off, before all was sent.
  bool gone() const;
  // Called once when that is seen, on an IO thread, so it may not wait; at once if it is so
  // already. Released when the request is answered. It may not own this exchange.
  void OnGone(std::function<void()> callback);

 private:
  HttpRequest request_;
  const std::shared_ptr<AnswerPipe> pipe_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_EXCHANGE_H_
