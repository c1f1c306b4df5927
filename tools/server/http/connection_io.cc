#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "tools/server/http/answer_pipe.h"
#include "tools/server/http/connection.h"

namespace trine::server {

void Connection::Read() {
  if (reading_ || ended_ || phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kAnswering && in_.size() >= limits_.pipelined_bytes) {
    read_deadline_ = Clock::now();  // OnReadLate checks whether the client is still there
    return Arm();
  }
  reading_ = true;
  socket_.async_read_some(boost::asio::buffer(area_),
                          [self = shared_from_this()](const Error& error, size_t bytes) {
                            self->reading_ = false;
                            if (self->phase_ != Phase::kClosed) self->OnRead(error, bytes);
                          });
}

void Connection::OnRead(const Error& error, size_t bytes) {
  if (error == boost::asio::error::eof) return OnEnd();
  if (error) return Lost();
  server_->counts.bytes_in += bytes;
  // Drops bytes that come after an error or the last answer, but reads them to get to the FIN.
  if (phase_ == Phase::kFailing || phase_ == Phase::kLingering) return Read();
  in_.append(area_.data(), bytes);
  if (phase_ == Phase::kReading) Advance();
  Read();
}

void Connection::OnEnd() {
  ended_ = true;
  switch (phase_) {
    case Phase::kReading:
      return busy_ ? Fail(400, "the request ended before it was complete") : Close();
    case Phase::kAnswering:
      return ClientGone();
    case Phase::kLingering:
      return Close();
    default:
      return;
  }
}

void Connection::Advance() {
  using State = RequestReader::State;
  const State before = reader_.state();
  in_.erase(0, reader_.Take(in_));
  const State state = reader_.state();
  if (state == State::kNothing) return;
  SetBusy(true);
  if (state == State::kFailed) return Fail(reader_.error_status(), reader_.error());
  if (state == State::kDone) return Dispatch();
  const Clock::time_point now = Clock::now();
  if (state == State::kHead) {
    if (before == State::kNothing && !first_) read_deadline_ = now + limits_.header_time;
  } else {
    if (before != State::kBody) {
      body_since_ = now;
      if (const auto refused = Refusal()) return Fail(refused->status, refused->message);
      if (reader_.awaits_continue() && in_.empty() && reader_.body_bytes() == 0) {
        own_ += "HTTP/1.1 100 Continue\r\n\r\n";
        Flush();
      }
    }
    if (!CountBody(reader_.body_bytes())) {
      return Fail(503, "there are too many large requests: try again later");
    }
    const double earned = static_cast<double>(reader_.body_bytes()) /
                          static_cast<double>(std::max<size_t>(limits_.body_rate, 1));
    read_deadline_ = body_since_ + limits_.body_time +
                     std::chrono::milliseconds(static_cast<int64_t>(earned * 1000));
  }
  Arm();
}

std::optional<HttpRefusal> Connection::Refusal() const {
  const auto& refuse = server_->options.refuse;
  try {
    if (refuse) return refuse(reader_.head());
  } catch (...) {
    return HttpRefusal{500, "the request can't be looked at"};
  }
  return std::nullopt;
}

bool Connection::CountBody(size_t bytes) {
  server_->body_bytes += bytes - counted_body_;
  counted_body_ = bytes;
  return server_->body_bytes <= limits_.all_body_bytes;
}

void Connection::Dispatch() {
  CountBody(0);
  phase_ = Phase::kAnswering;
  first_ = false;
  read_deadline_ = Clock::time_point::max();
  ++server_->counts.requests;
  form_ = reader_.form();
  // `this` is alive whenever wake is called, because wake is not called after Detach.
  pipe_ = std::make_shared<AnswerPipe>(form_, limits_.waiting_bytes, [this] {
    boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->Flush(); });
  });
  if (draining_) pipe_->CloseAfter();
  if (ended_) pipe_->SetGone();  // the client is counted already
  HttpRequest request = reader_.Finish();
  request.peer = peer_;
  request.network = address_;
  try {
    server_->handler(AnswerPipe::HandOut(pipe_, std::move(request)));
  } catch (...) {
    // The exchange was destroyed with it, which answers 500.
  }
}

std::string Connection::ErrorAnswer(int status, std::string_view message, bool head_only) const {
  std::string body = std::string(message) + "\n";
  HttpHeaders headers = {{"Content-Type", "text/plain"}};
  try {
    if (const auto& json = server_->options.error_body) {
      body = json(status, message);
      headers.front().second = "application/json";
    }
    if (const auto& more = server_->options.error_headers) {
      for (auto& header : more()) headers.push_back(std::move(header));
    }
  } catch (...) {
    // The error is sent in any case.
  }
  if (status == 503) headers.emplace_back("Retry-After", "1");
  const std::string head =
      FormatHead({.status = status, .content_length = body.size(), .keep_alive = false}, headers);
  return head_only ? head : head + body;
}

void Connection::Fail(int status, std::string_view message) {
  if (place_ == Place::kServed) ++server_->counts.bad_requests;
  phase_ = Phase::kFailing;
  CountBody(0);
  read_deadline_ = Clock::time_point::max();
  own_ += ErrorAnswer(status, message, reader_.form().head_only);
  in_.clear();
  Flush();
  Read();
}

void Connection::Flush() {
  if (writing_ || phase_ == Phase::kClosed) return;
  if (out_.empty()) {
    AnswerPipe::State state = AnswerPipe::State::kOpen;
    out_is_pipes_ = own_.empty();
    if (!own_.empty()) {
      out_.swap(own_);
    } else if (pipe_) {
      state = pipe_->Take(&out_);
    }
    if (out_.empty()) return OnAllTaken(state);
  }
  writing_ = true;
  write_deadline_ = Clock::now() + limits_.write_time;
  Arm();
  socket_.async_write_some(boost::asio::buffer(out_.data() + out_sent_, out_.size() - out_sent_),
                           [self = shared_from_this()](const Error& error, size_t bytes) {
                             self->writing_ = false;
                             if (self->phase_ != Phase::kClosed) self->OnWritten(error, bytes);
                           });
}

void Connection::OnWritten(const Error& error, size_t bytes) {
  if (error) return Lost();
  server_->counts.bytes_out += bytes;
  write_deadline_ = Clock::time_point::max();
  if (out_is_pipes_ && pipe_) pipe_->Sent(bytes);
  out_sent_ += bytes;
  if (out_sent_ == out_.size()) {
    out_.clear();
    out_sent_ = 0;
  }
  Flush();
}

void Connection::OnAllTaken(AnswerPipe::State state) {
  if (phase_ == Phase::kFailing) return Linger();
  if (phase_ != Phase::kAnswering) return;
  switch (state) {
    case AnswerPipe::State::kOpen:
      return;
    case AnswerPipe::State::kComplete:
      return Answered();
    case AnswerPipe::State::kCut:
      return Close();
    case AnswerPipe::State::kUnanswered:
      pipe_->Detach();
      pipe_.reset();
      own_ = ErrorAnswer(500, "the request was not answered", form_.head_only);
      phase_ = Phase::kFailing;
      return Flush();
  }
}

void Connection::Answered() {
  const bool keep = pipe_->keep_alive();
  pipe_->Detach();
  pipe_.reset();
  SetBusy(false);
  if (!keep) return Linger();
  phase_ = Phase::kReading;
  read_deadline_ = Clock::now() + limits_.idle_time;
  Arm();
  if (!in_.empty()) Advance();
  if (phase_ == Phase::kReading && ended_) return OnEnd();
  Read();
}

}  // namespace trine::server
