// What lies between whoever answers a request, on any thread, and the connection that sends it: the
// answer's bytes, bounded, and the news that the client has gone. It knows no socket, and outlives
// the connection as easily as the connection outlives it. Thread-safe.
#ifndef TRINE_TOOLS_SERVER_HTTP_ANSWER_PIPE_H_
#define TRINE_TOOLS_SERVER_HTTP_ANSWER_PIPE_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "tools/server/http/http_request.h"

namespace trine::server {

// What the request says about the form of its answer.
struct AnswerForm {
  bool head_only = false;  // HEAD
  bool http_1_0 = false;   // no chunks: the connection's end is the stream's
  bool keep_alive = true;
};

class AnswerPipe {
 public:
  // `wake`: there is something to Take. Called with the lock held, never after Detach.
  AnswerPipe(AnswerForm form, size_t most_waiting, std::function<void()> wake);
  AnswerPipe(const AnswerPipe&) = delete;
  AnswerPipe& operator=(const AnswerPipe&) = delete;

  // For whoever answers: see Exchange.
  bool Send(int status, const HttpHeaders& headers, std::string_view body);
  bool Begin(int status, const HttpHeaders& headers);
  bool Write(std::string_view bytes);
  void End();
  void Abandon();  // nobody is left who could answer
  bool gone() const;
  void OnGone(std::function<void()> callback);

  // For the connection.
  enum class State {
    kOpen,        // there is more to come
    kComplete,    // that was all
    kUnanswered,  // and never will be
    kCut,         // a stream without its end: so must the connection be
  };
  // Appends what waits to `out`.
  State Take(std::string* out);
  // Of what was taken. Makes room for whoever waits in Write.
  void Sent(size_t bytes);
  // An answer that is not begun yet says that the connection closes after it.
  void CloseAfter();
  bool keep_alive() const;
  // The client sends nothing more. What is sent whole still reaches it if it only half-closed.
  void SetGone();
  // The connection is no more: nothing is taken from here on. Gone, unless all was sent.
  void Detach();

 private:
  enum class Answer { kNone, kStreaming, kDone, kAbandoned, kCut };
  bool MayAnswer() const { return attached_ && answer_ == Answer::kNone; }
  void Went(bool detached);

  const AnswerForm form_;
  const size_t most_waiting_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::string waiting_;  // not taken yet
  size_t taken_ = 0;     // and not sent yet
  Answer answer_ = Answer::kNone;
  bool chunked_ = false, bodiless_ = false;
  bool keep_alive_;
  bool attached_ = true;
  bool gone_ = false;
  std::function<void()> on_gone_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_ANSWER_PIPE_H_
