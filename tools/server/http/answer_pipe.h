// Carries the bytes of an answer from the code that answers a request to the connection.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/server/http/http_request.h"

namespace trine::server {

// The first part of an answer: status line and headers.
struct ResponseHead {
  int status = 200;
  std::optional<size_t> content_length = {};  // nullopt: the length is not known at the beginning
  bool chunked = false;
  bool keep_alive = true;
};

// Returns whether an answer with this status has a body.
bool HasBody(int status);

// Returns whether the headers ask to close the connection after the answer.
bool AsksToClose(const HttpHeaders& headers);

// Formats the head. Takes everything that determines the answer's end from `head` and ignores what
// `headers` say about it. No name or value of a header can begin another line.
std::string FormatHead(const ResponseHead& head, const HttpHeaders& headers);

// The form of an answer, as far as the request determines it.
struct AnswerForm {
  bool head_only = false;  // the request is a HEAD: the answer has no body
  bool http_1_0 = false;   // the client knows no chunks: a stream ends when the connection closes
  bool keep_alive = true;
};

// One request and its answer, as the code that answers sees them. Holds the answer's bytes, up to a
// limit, until the connection takes them. Thread-safe: the request may come on one thread and be
// answered on another. May outlive the connection and the server; the client then counts as gone,
// and the answer is dropped.
class Exchange {
 public:
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }
  // Frees the request's body. Call it when the handler has read the body. No other thread may use
  // the request during the call.
  void ForgetBody() { std::string().swap(request_.body); }

  // Sends a whole answer; never waits. Adds the headers Content-Length, Date and Connection. Leaves
  // the body out if the request is a HEAD or the status has no body. Returns false if the request
  // was answered before or the connection is closed. Also sends the answer to a client that is
  // gone(), because the client may have closed its own direction only.
  bool Send(int status, const HttpHeaders& headers, std::string_view body);

  // Begins an answer in parts. Returns false if the client has gone or the request was answered
  // before.
  bool BeginStream(int status, const HttpHeaders& headers);
  // Sends a part of the answer. Waits while too many bytes wait for the client, so an IO thread
  // must not call it. Returns false if the client has gone. A client that takes nothing for
  // HttpLimits::write_time counts as gone.
  bool Write(std::string_view bytes);
  void End();

  // Returns whether the client closed its connection, or was cut off, before everything was sent.
  bool gone() const;
  // Sets a function that is called once, when the client has gone, or at once if it has gone
  // already. The function is called on an IO thread, so it must not wait. It is destroyed when the
  // request is answered, and must not own this exchange.
  void OnGone(std::function<void()> callback);

 protected:
  Exchange(AnswerForm form, size_t most_waiting, std::function<void()> wake);
  ~Exchange() = default;

  enum class Answer { kNone, kStreaming, kDone, kAbandoned, kCut };
  bool MayAnswer() const { return attached_ && answer_ == Answer::kNone; }

  HttpRequest request_;
  const AnswerForm form_;
  const size_t most_waiting_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::string waiting_;  // bytes that Take has yet to take
  size_t taken_ = 0;     // bytes taken but not sent yet
  Answer answer_ = Answer::kNone;
  bool chunked_ = false, bodiless_ = false;
  bool keep_alive_;
  bool attached_ = true;
  bool gone_ = false;
  std::function<void()> on_gone_;
};

// An exchange as the connection that sends the answer sees it. Knows no socket.
class AnswerPipe : public Exchange {
 public:
  // `wake` is called when there is something to Take, with the lock held and never after Detach.
  // The pipe holds at most `most_waiting` bytes; Write waits.
  AnswerPipe(AnswerForm form, size_t most_waiting, std::function<void()> wake)
      : Exchange(form, most_waiting, std::move(wake)) {}

  // Returns the pipe for the code that answers. Call it once. When the last copy is destroyed, a
  // request without an answer is answered with 500, and the connection of a stream without an end
  // is cut, so that the client sees that something is missing.
  static std::shared_ptr<Exchange> HandOut(std::shared_ptr<AnswerPipe> pipe, HttpRequest request);

  enum class State {
    kOpen,        // more bytes may come
    kComplete,    // the answer is complete
    kUnanswered,  // there is no answer, and none will come
    kCut,         // a stream has stopped without an end: the connection must be cut
  };
  // Moves the waiting bytes to the end of *out.
  State Take(std::string* out);
  // Tells that `bytes` of the bytes taken have been sent. This makes room for a Write that waits.
  void Sent(size_t bytes);
  // Makes the answer say that the connection closes after it, unless the answer has begun.
  void CloseAfter();
  bool keep_alive() const;
  // Tells that the client sends nothing more. The client counts as gone, but the connection still
  // takes bytes: a client that has closed its own direction only receives a whole answer (Send).
  void SetGone();
  // Tells that the connection is closed and takes nothing more. The client counts as gone, unless
  // the whole answer has been sent.
  void Detach();

 private:
  void Abandon();  // tells that no answer, or no more of it, will come
  void Went(bool detached);
};

}  // namespace trine::server
