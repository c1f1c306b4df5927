#include "tools/server/http/answer_pipe.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <ctime>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

std::string Reason(int status) {
  if (status == 499) return "Client Closed Request";
  const auto text = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

std::string Date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  gmtime_r(&now, &parts);
  // The names of strftime depend on the locale.
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto two = [](int n) { return absl::Dec(n, absl::kZeroPad2); };
  return absl::StrCat(kDays[parts.tm_wday], ", ", two(parts.tm_mday), " ", kMonths[parts.tm_mon],
                      " ", parts.tm_year + 1900, " ", two(parts.tm_hour), ":", two(parts.tm_min),
                      ":", two(parts.tm_sec), " GMT");
}

bool IsOurs(const std::string& name) {
  for (const char* ours : {"Connection", "Content-Length", "Date", "Transfer-Encoding"}) {
    if (absl::EqualsIgnoreCase(name, ours)) return true;
  }
  return false;
}

bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return c > 0x20 && c < 0x7f && c != ':'; });
}

std::string OneLine(std::string value) {
  for (char& c : value) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = ' ';
  }
  return value;
}

}  // namespace

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

bool AsksToClose(const HttpHeaders& headers) {
  return std::any_of(headers.begin(), headers.end(), [](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, "Connection") &&
           absl::EqualsIgnoreCase(header.second, "close");
  });
}

std::string FormatHead(const ResponseHead& head, const HttpHeaders& headers) {
  std::string text = absl::StrCat("HTTP/1.1 ", head.status, " ", Reason(head.status),
                                  "\r\nDate: ", Date(), "\r\n");
  for (const auto& [name, value] : headers) {
    if (IsOurs(name) || !IsName(name)) continue;
    absl::StrAppend(&text, name, ": ", OneLine(value), "\r\n");
  }
  if (head.chunked) {
    absl::StrAppend(&text, "Transfer-Encoding: chunked\r\n");
  } else if (head.content_length && HasBody(head.status)) {
    absl::StrAppend(&text, "Content-Length: ", *head.content_length, "\r\n");
  }
  absl::StrAppend(&text, "Connection: ", head.keep_alive ? "keep-alive" : "close", "\r\n\r\n");
  return text;
}

Exchange::Exchange(AnswerForm form, size_t most_waiting, std::function<void()> wake)
    : form_(form),
      most_waiting_(most_waiting),
      wake_(std::move(wake)),
      keep_alive_(form.keep_alive) {}

bool Exchange::Send(int status, const HttpHeaders& headers, std::string_view body) {
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

bool Exchange::BeginStream(int status, const HttpHeaders& headers) {
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

bool Exchange::Write(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (answer_ != Answer::kStreaming) return false;
  room_.wait(lock, [&] { return gone_ || waiting_.size() + taken_ < most_waiting_; });
  if (gone_) {
    if (answer_ == Answer::kStreaming) answer_ = Answer::kCut;
    return false;
  }
  if (answer_ != Answer::kStreaming) return false;
  // An empty chunk would mark the end of the stream.
  if (bytes.empty() || bodiless_) return true;
  // If bytes wait already, the connection has been woken, or takes them after its current write.
  const bool wake = waiting_.empty();
  if (chunked_) absl::StrAppend(&waiting_, absl::Hex(bytes.size()), "\r\n");
  waiting_ += bytes;
  if (chunked_) waiting_ += "\r\n";
  if (wake) wake_();
  return true;
}

void Exchange::End() {
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

bool Exchange::gone() const {
  std::lock_guard lock(mutex_);
  return gone_;
}

void Exchange::OnGone(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!gone_) {
      if (answer_ == Answer::kNone || answer_ == Answer::kStreaming) on_gone_.swap(callback);
      return;
    }
  }
  callback();
}

std::shared_ptr<Exchange> AnswerPipe::HandOut(std::shared_ptr<AnswerPipe> pipe,
                                              HttpRequest request) {
  pipe->request_ = std::move(request);
  AnswerPipe* const raw = pipe.get();
  return {raw, [pipe = std::move(pipe)](Exchange*) {
            pipe->request_ = {};
            pipe->Abandon();
          }};
}

void AnswerPipe::Abandon() {
  std::function<void()> released;
  std::lock_guard lock(mutex_);
  released.swap(on_gone_);
  if (answer_ == Answer::kDone) return;
  answer_ = answer_ == Answer::kNone ? Answer::kAbandoned : Answer::kCut;
  if (attached_) wake_();
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
  if (answer_ == Answer::kDone) return State::kComplete;
  if (answer_ == Answer::kAbandoned) return State::kUnanswered;
  return answer_ == Answer::kCut ? State::kCut : State::kOpen;
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
      // The whole answer was sent, so the client has not gone too early.
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
    // An error of the callback must not keep the connection from closing.
  }
}

}  // namespace trine::server
