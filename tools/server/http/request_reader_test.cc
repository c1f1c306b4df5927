#include "tools/server/http/request_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace trine::server {
namespace {

using ReaderState = RequestReader::State;

// Feeds the reader as a connection does: `step` bytes at a time, after what was not taken before.
ReaderState Feed(RequestReader* reader, std::string_view bytes, size_t step, std::string* left) {
  while (!bytes.empty() && reader->state() != ReaderState::kDone &&
         reader->state() != ReaderState::kFailed) {
    *left += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    left->erase(0, reader->Take(*left));
  }
  *left += bytes;
  return reader->state();
}

ReaderState FeedAll(RequestReader* reader, std::string_view bytes) {
  std::string left;
  return Feed(reader, bytes, bytes.size(), &left);
}

int StatusOf(std::string_view bytes, const HttpLimits& limits = {}) {
  RequestReader reader(limits);
  return FeedAll(&reader, bytes) == ReaderState::kFailed ? reader.error_status() : 0;
}

constexpr std::string_view kPost =
    "POST /v1/x%20y?a=1&b=%41+c HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view kChunked =
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3;ext=1\r\nhel\r\n2\r\nlo\r\n0\r\nX-One: late\r\n\r\n";

TEST(RequestReaderTest, ReadsARequestInPiecesOfAnySize) {
  for (size_t step = 1; step <= kPost.size(); ++step) {
    RequestReader reader({});
    std::string left;
    ASSERT_EQ(Feed(&reader, kPost, step, &left), ReaderState::kDone) << step;
    const HttpRequest request = reader.Finish();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/x y");
    EXPECT_EQ(request.query, "a=1&b=%41+c");
    EXPECT_EQ(request.Header("x-one"), "1");
    EXPECT_EQ(request.body, "hello");
    EXPECT_EQ(reader.state(), ReaderState::kNothing);
  }
}

TEST(RequestReaderTest, ReadsChunksAndTakesNoHeadersFromTheirEnd) {
  for (size_t step = 1; step <= kChunked.size(); ++step) {
    RequestReader reader({});
    std::string left;
    ASSERT_EQ(Feed(&reader, kChunked, step, &left), ReaderState::kDone) << step;
    const HttpRequest request = reader.Finish();
    EXPECT_EQ(request.body, "hello");
    EXPECT_FALSE(request.Header("X-One").has_value());
  }
}

TEST(RequestReaderTest, LeavesTheNextRequestAlone) {
  const std::string both = std::string(kPost) + "\r\n" + std::string(kChunked) + "GET";
  for (const size_t step : {size_t{1}, size_t{7}, both.size()}) {
    RequestReader reader({});
    std::string left;
    ASSERT_EQ(Feed(&reader, both, step, &left), ReaderState::kDone);
    EXPECT_EQ(reader.Finish().path, "/v1/x y");
    std::string rest;
    ASSERT_EQ(Feed(&reader, left, step, &rest), ReaderState::kDone);
    EXPECT_EQ(reader.Finish().body, "hello");
    EXPECT_EQ(rest, "GET");
  }
}

TEST(RequestReaderTest, SaysWhatItRefusesAndWhy) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("hello\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("\x16\x03\x01\x02 tls"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no host";
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: h\r\nX y: 1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET x HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /%0 HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /%0d%0a HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: h\r\nExpect: wonders\r\n\r\n"), 417);
}

TEST(RequestReaderTest, RefusesRequestsWhoseEndIsADispute) {
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(StatusOf(post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: -5\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: 99999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "Transfer-Encoding: gzip\r\n\r\n"), 501);
  EXPECT_EQ(StatusOf(post + "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501);
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n"), 400);
}

TEST(RequestReaderTest, BoundsTheHead) {
  const HttpLimits limits = {.header_bytes = 1000};
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  while (many.size() < 1000) many += "A: b\r\n";
  EXPECT_EQ(StatusOf(many, limits), 431) << "short lines, no end";
  EXPECT_EQ(StatusOf(many + "\r\n", limits), 431) << "short lines, all there";
  EXPECT_EQ(StatusOf("GET /" + std::string(2000, 'a'), limits), 431);
  EXPECT_EQ(StatusOf(std::string(2000, 'A'), limits), 431);
  EXPECT_EQ(
      StatusOf("GET / HTTP/1.1\r\nHost: h\r\nA: " + std::string(900, 'a') + "\r\n\r\n", limits), 0);
}

TEST(RequestReaderTest, BoundsTheBody) {
  const HttpLimits limits = {.header_bytes = 1000, .body_bytes = 4};
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(StatusOf(post + "Content-Length: 5\r\n\r\n", limits), 413) << "before it comes";
  EXPECT_EQ(StatusOf(post + "Content-Length: 4\r\n\r\nabcd", limits), 0);
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", limits), 0);
  EXPECT_EQ(StatusOf(chunked + "3\r\nabc\r\n2\r\nde\r\n", limits), 413);
  EXPECT_EQ(StatusOf(chunked + "1;" + std::string(2000, 'x'), limits), 400) << "extension";
  EXPECT_EQ(StatusOf(chunked + "0\r\n" + std::string(2000, 'x'), limits), 400) << "trailer";
}

TEST(RequestReaderTest, KnowsWhatTheAnswerMayLookLike) {
  const auto form = [](std::string_view bytes) {
    RequestReader reader({});
    EXPECT_EQ(FeedAll(&reader, bytes), ReaderState::kDone);
    return reader.form();
  };
  EXPECT_TRUE(form("GET / HTTP/1.1\r\nHost: h\r\n\r\n").keep_alive);
  EXPECT_FALSE(form("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").keep_alive);
  EXPECT_FALSE(form("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(form("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
  EXPECT_TRUE(form("GET / HTTP/1.0\r\n\r\n").http_1_0);
  EXPECT_TRUE(form("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").head_only);
}

TEST(RequestReaderTest, SeesWhoWaitsForAContinue) {
  RequestReader reader({});
  EXPECT_EQ(
      FeedAll(&reader,
              "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"),
      ReaderState::kBody);
  EXPECT_TRUE(reader.awaits_continue());
}

// Whatever comes, the reader ends in a valid state and takes no more than it was given.
TEST(RequestReaderTest, SurvivesDamagedRequests) {
  std::mt19937 random(7);
  const std::vector<std::string_view> seeds = {kPost, kChunked};
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(seeds[random() % seeds.size()]);
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 5);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 9));
      }
      if (bytes.empty()) bytes = " ";
    }
    RequestReader reader({.header_bytes = 200, .body_bytes = 20});
    std::string left;
    const ReaderState state = Feed(&reader, bytes, 1 + random() % 16, &left);
    ASSERT_LE(left.size(), bytes.size());
    if (state == ReaderState::kFailed) {
      ASSERT_GE(reader.error_status(), 400);
      ASSERT_LT(reader.error_status(), 600);
    } else if (state == ReaderState::kDone) {
      ASSERT_LE(reader.Finish().body.size(), 20u);
    }
  }
}

}  // namespace
}  // namespace trine::server
