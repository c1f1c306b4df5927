#include "tools/server/http/answer_pipe.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/http/response_head.h"

namespace trine::server {

AnswerPipe::AnswerPipe(AnswerForm form, size_t most_waiting, std::function<void()> wake)
    : form_(form),
      most_waiting_(most_waiting),
      wake_(std::move(wake)),
      keep_alive_(form.keep_alive) {}

bool AnswerPipe::Send(int status, const HttpHeaders& headers, std::string_view body) {
  std::function<void()> released;
  std::lock_guard lock(mutex_);
  if (!MayAnswer()) return false;
  keep_alive_ = keep_alive_ && !AsksToClose(headers);
  waiting_ += FormatHead(
      {.status = status, .content_length = body.size(), .keep_alive = keep_alive_}, headers);
  if (!form_.head_only && HasBody(status)) waiting_ += body;
  answer_ = Answer::kDone;
  released.swap(on_gone_);
  wake_();
  return true;
}

bool AnswerPipe::Begin(int status, const HttpHeaders& headers) {
  std::lock_guard lock(mutex_);
  if (!MayAnswer() || gone_) return false;
  bodiless_ = form_.head_only || !HasBody(status);
  chunked_ = !form_.http_1_0 && HasBody(status);
  keep_alive_ = keep_alive_ && !AsksToClose(headers) && (chunked_ || bodiless_);
  waiting_ +=
      FormatHead({.status = status, .chunked = chunked_, .keep_alive = keep_alive_}, headers);
  answer_ = Answer::kStreaming;
  wake_();
  return true;
}

bool AnswerPipe::Write(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (answer_ != Answer::kStreaming) return false;
  room_.wait(lock, [&] { return gone_ || waiting_.size() + taken_ < most_waiting_; });
  if (gone_) {
    if (answer_ == Answer::kStreaming) answer_ = Answer::kCut;
    return false;
  }
  if (answer_ != Answer::kStreaming) return false;
  // A chunk of no bytes would be the last one.
  if (bytes.empty() || bodiless_) return true;
  // Where something waits already the connection knows, or is going to look when it has written.
  const bool wake = waiting_.empty();
  if (chunked_) absl::StrAppend(&waiting_, absl::Hex(bytes.size()), "\r\n");
  waiting_ += bytes;
  if (chunked_) waiting_ += "\r\n";
  if (wake) wake_();
  return true;
}

void AnswerPipe::End() {
  std::function<void()> released;
  std::lock_guard lock(mutex_);
  if (answer_ == Answer::kStreaming) {
    if (chunked_ && !bodiless_) waiting_ += "0\r\n\r\n";
    answer_ = Answer::kDone;
  } else if (answer_ != Answer::kCut) {
    return;
  }
  released.swap(on_gone_);
  if (attached_) wake_();
}

void AnswerPipe::Abandon() {
  std::function<void()> released;
  std::lock_guard lock(mutex_);
  released.swap(on_gone_);
  if (answer_ == Answer::kDone) return;
  answer_ = answer_ == Answer::kNone ? Answer::kAbandoned : Answer::kCut;
  if (attached_) wake_();
}

bool AnswerPipe::gone() const {
  std::lock_guard lock(mutex_);
  return gone_;
}

void AnswerPipe::OnGone(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!gone_) {
      if (answer_ == Answer::kNone || answer_ == Answer::kStreaming) on_gone_.swap(callback);
      return;
    }
  }
  callback();
}

AnswerPipe::State AnswerPipe::Take(std::string* out) {
  std::lock_guard lock(mutex_);
  taken_ += waiting_.size();
  if (out->empty()) {
    out->swap(waiting_);
  } else {
    *out += waiting_;
  }
  waiting_.clear();
  switch (answer_) {
    case Answer::kDone:
      return State::kComplete;
    case Answer::kAbandoned:
      return State::kUnanswered;
    case Answer::kCut:
      return State::kCut;
    default:
      return State::kOpen;
  }
}

void AnswerPipe::Sent(size_t bytes) {
  std::lock_guard lock(mutex_);
  taken_ -= bytes;
  if (waiting_.size() + taken_ < most_waiting_) room_.notify_all();
}

void AnswerPipe::CloseAfter() {
  std::lock_guard lock(mutex_);
  keep_alive_ = false;
}

bool AnswerPipe::keep_alive() const {
  std::lock_guard lock(mutex_);
  return keep_alive_;
}

void AnswerPipe::SetGone() { Went(false); }

void AnswerPipe::Detach() { Went(true); }

void AnswerPipe::Went(bool detached) {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex_);
    if (detached) {
      attached_ = false;
      waiting_.clear();
      // All of it was sent: nobody asks what the client did afterwards.
      if (answer_ == Answer::kDone && taken_ == 0) return;
    }
    if (gone_) return;
    gone_ = true;
    callback.swap(on_gone_);
  }
  room_.notify_all();
  if (!callback) return;
  try {
    callback();
  } catch (...) {
    // It is not this connection's: that must go on closing.
  }
}

}  // namespace trine::server
