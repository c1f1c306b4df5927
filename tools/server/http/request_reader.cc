#include "tools/server/http/request_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

namespace http = boost::beast::http;

}  // namespace

struct RequestReader::Parser {
  http::request_parser<http::string_body> beast;

  // Parses one step: a head, or a part of a body. Returns 0 or the status of the error. Sets *taken
  // as Take does.
  int Put(std::string_view bytes, size_t* taken, bool* needs_more, std::string* why) {
    boost::system::error_code error;
    *taken = beast.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    *needs_more = error == http::error::need_more;
    if (!error || *needs_more) return 0;
    *why = error.message();
    if (error == http::error::header_limit) return 431;
    if (error == http::error::body_limit) return 413;
    return error == http::error::bad_version ? 505 : 400;
  }
};

RequestReader::RequestReader(const HttpLimits& limits) : limits_(limits) { Finish(); }

RequestReader::~RequestReader() = default;

HttpRequest RequestReader::Finish() {
  if (state_ == State::kDone) request_.body = std::move(parser_->beast.get().body());
  parser_ = std::make_unique<Parser>();
  // Beast limits a head line by line; TakeHead limits its sum.
  parser_->beast.header_limit(std::numeric_limits<std::uint32_t>::max());
  parser_->beast.body_limit(limits_.body_bytes);
  state_ = State::kNothing;
  head_bytes_ = 0;
  awaits_continue_ = false;
  form_ = {};
  return std::exchange(request_, {});
}

size_t RequestReader::body_bytes() const {
  return state_ == State::kBody ? parser_->beast.get().body().size() : 0;
}

size_t RequestReader::Take(std::string_view bytes) {
  size_t taken = 0;
  if (state_ == State::kNothing) {
    // Some clients send an extra line end after a body.
    while (bytes.substr(taken).starts_with("\r\n")) taken += 2;
    if (taken == bytes.size() || bytes.substr(taken) == "\r") return taken;
    state_ = State::kHead;
  }
  if (state_ == State::kHead) taken += TakeHead(bytes.substr(taken));
  if (state_ == State::kBody) taken += TakeBody(bytes.substr(taken));
  return taken;
}

size_t RequestReader::TakeHead(std::string_view bytes) {
  size_t taken = 0;
  bool needs_more = false;
  std::string why;
  const int status = parser_->Put(bytes, &taken, &needs_more, &why);
  head_bytes_ += taken;
  const size_t seen = head_bytes_ + (needs_more ? bytes.size() - taken : 0);
  if (seen > limits_.header_bytes) {
    Fail(431,
         absl::StrCat("the request's headers are longer than ", limits_.header_bytes, " bytes"));
  } else if (status == 413) {
    Fail(413, absl::StrCat("the request's body is longer than ", limits_.body_bytes, " bytes"));
  } else if (status != 0) {
    Fail(status, absl::StrCat("this is not a request: ", why));
  } else if (!needs_more) {
    ReadHead();
  }
  return taken;
}

void RequestReader::ReadHead() {
  const auto& head = parser_->beast.get();
  form_ = {.head_only = head.method() == http::verb::head,
           .http_1_0 = head.version() == 10,
           .keep_alive = head.keep_alive()};
  // Copied here, so that trailers of a chunked body add nothing to them.
  for (const auto& field : head.base()) {
    request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request_.method = std::string(head.method_string());
  if (!SetTarget({head.target().data(), head.target().size()}, &request_)) {
    return Fail(400, "the request's target is not a path");
  }
  CheckFraming();
  if (state_ == State::kFailed) return;
  state_ = parser_->beast.is_done() ? State::kDone : State::kBody;
  if (const auto expects = request_.Header("Expect"); expects && !form_.http_1_0) {
    awaits_continue_ = absl::EqualsIgnoreCase(std::string(*expects), "100-continue");
    if (!awaits_continue_) Fail(417, "the only expectation that can be met is 100-continue");
  }
}

// Refuses a request whose end, or whose host, two readers could see differently.
void RequestReader::CheckFraming() {
  const auto& head = parser_->beast.get();
  const size_t hosts = head.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && !form_.http_1_0)) {
    return Fail(400, "a request has exactly one Host header");
  }
  if (const auto coding = request_.Header("Transfer-Encoding")) {
    if (form_.http_1_0) return Fail(400, "HTTP/1.0 has no Transfer-Encoding");
    if (head.count(http::field::transfer_encoding) > 1 ||
        !absl::EqualsIgnoreCase(std::string(*coding), "chunked")) {
      return Fail(501, "the only Transfer-Encoding that is understood is chunked");
    }
  }
}

size_t RequestReader::TakeBody(std::string_view bytes) {
  size_t all = 0;
  while (all < bytes.size() && !parser_->beast.is_done()) {
    size_t taken = 0;
    bool needs_more = false;
    std::string why;
    const int status = parser_->Put(bytes.substr(all), &taken, &needs_more, &why);
    all += taken;
    if (status == 413) {
      Fail(413, absl::StrCat("the request's body is longer than ", limits_.body_bytes, " bytes"));
    } else if (status != 0) {
      Fail(400, absl::StrCat("the request's body is malformed: ", why));
    } else if (needs_more && bytes.size() - all > limits_.header_bytes) {
      // A chunk's extension or a trailer: useless, and otherwise unlimited.
      Fail(400, "a line between chunks of the request's body is too long");
    }
    if (state_ == State::kFailed) return all;
    if (needs_more) break;
  }
  if (parser_->beast.is_done()) state_ = State::kDone;
  return all;
}

void RequestReader::Fail(int status, std::string why) {
  state_ = State::kFailed;
  error_status_ = status;
  error_ = std::move(why);
  form_.keep_alive = false;
}

}  // namespace trine::server
