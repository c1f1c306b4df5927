// What the protocol requires of a server.
#include "tools/server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tools/server/http/raw_client.h"
#include "tools/server/http/test_server.h"

namespace trine::server {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HttpServerTest, KeepsAConnectionForManyRequests) {
  TestServer test;
  RawClient client(test.port());
  for (int i = 0; i < 5; ++i) {
    const RawAnswer answer = client.Ask(Post("/echo", "hello"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST hello");
    EXPECT_EQ(answer.Header("Content-Type"), "text/plain");
    EXPECT_EQ(answer.Header("Connection"), "keep-alive");
  }
  EXPECT_EQ(client.Ask(Get("/nowhere")).status, 404);
  const HttpCounters counters = test.server->counters();
  EXPECT_EQ(counters.accepted, 1u);
  EXPECT_EQ(counters.open, 1u);
  EXPECT_EQ(counters.requests, 6u);
  EXPECT_GT(counters.bytes_in, 6 * 40u);
  EXPECT_GT(counters.bytes_out, 6 * 40u);
}

TEST(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  TestServer test;
  RawClient client(test.port());
  std::string all = Get("/hold?n=0") + Get("/hold?n=1");
  for (int i = 0; i < 100; ++i) all += Post("/echo", std::to_string(i));
  ASSERT_TRUE(client.Send(all));
  for (const char* n : {"0", "1"}) {
    const auto exchange = test.Held();
    ASSERT_NE(exchange, nullptr);
    EXPECT_EQ(exchange->request().QueryValue("n"), n);
    exchange->Send(200, {}, n);
    EXPECT_EQ(client.Read().body, n);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.Read().body, "POST " + std::to_string(i));
}

TEST(HttpServerTest, PipelinedBytesBeyondTheLimitWaitWithTheClient) {
  TestServer test({.pipelined_bytes = 1000});
  RawClient client(test.port());
  std::string all = Get("/hold");
  for (int i = 0; i < 2000; ++i) all += Post("/echo", std::to_string(i));
  std::thread sender([&] { EXPECT_TRUE(client.Send(all)); });
  const auto exchange = test.Held();
  ASSERT_NE(exchange, nullptr);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LT(test.server->counters().bytes_in, 64u << 10);
  EXPECT_FALSE(exchange->gone());
  exchange->Send(200, {}, "held");
  EXPECT_EQ(client.Read().body, "held");
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(client.Read().body, "POST " + std::to_string(i));
  sender.join();
}

TEST(HttpServerTest, ClosesWhereItIsAskedTo) {
  TestServer test;
  RawClient asked(test.port());
  EXPECT_EQ(asked.Ask(Get("/echo", "Connection: close\r\n")).Header("Connection"), "close");
  EXPECT_TRUE(asked.Closes());
  RawClient old(test.port());
  EXPECT_EQ(old.Ask("GET /echo HTTP/1.0\r\n\r\n").body, "GET ");
  EXPECT_TRUE(old.Closes());
  RawClient kept(test.port());
  for (int i = 0; i < 2; ++i) {
    const auto answer = kept.Ask("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(answer.Header("Connection"), "keep-alive");
  }
}

TEST(HttpServerTest, StreamsInChunks) {
  TestServer test;
  RawClient client(test.port());
  for (int round = 0; round < 2; ++round) {
    client.Send(Get("/hold"));
    const auto exchange = test.Held();
    ASSERT_NE(exchange, nullptr);
    std::string all;
    EXPECT_TRUE(exchange->BeginStream(200, {{"Content-Type", "text/event-stream"}}));
    for (int i = 0; i < 300; ++i) {
      const std::string part = "data: " + std::to_string(i) + "\n\n";
      EXPECT_TRUE(exchange->Write(part));
      all += part;
    }
    exchange->End();
    const RawAnswer answer = client.Read();
    EXPECT_TRUE(answer.complete);
    EXPECT_EQ(answer.body, all);
    EXPECT_EQ(answer.Header("Content-Type"), "text/event-stream");
  }
}

TEST(HttpServerTest, AFrameIsSentWhenItIsWritten) {
  TestServer test;
  RawClient client(test.port());
  client.Send(Get("/hold"));
  const auto exchange = test.Held();
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(exchange->BeginStream(200, {}));
  EXPECT_TRUE(exchange->Write("first"));
  const std::string sought = "\r\n\r\n5\r\nfirst\r\n";
  std::string got;
  while (!got.ends_with(sought)) {
    const std::string more = client.ReadSome(1);
    ASSERT_FALSE(more.empty()) << got;
    got += more;
  }
}

TEST(HttpServerTest, StreamsToHttp10UntilTheEnd) {
  TestServer test;
  RawClient client(test.port());
  client.Send("GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto exchange = test.Held();
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(exchange->BeginStream(200, {}));
  EXPECT_TRUE(exchange->Write("ab"));
  EXPECT_TRUE(exchange->Write("cd"));
  exchange->End();
  const RawAnswer answer = client.Read();
  EXPECT_EQ(answer.body, "abcd");
  EXPECT_EQ(answer.Header("Connection"), "close");
}

TEST(HttpServerTest, AnswersHeadWithoutABody) {
  TestServer test;
  RawClient client(test.port());
  const RawAnswer answer = client.Ask("HEAD /echo HTTP/1.1\r\nHost: h\r\n\r\n", true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Content-Length"), "5");
  EXPECT_EQ(client.Ask(Get("/echo")).body, "GET ") << "nothing lies between the two";
  EXPECT_EQ(client.Ask("HEAD /drop HTTP/1.1\r\nHost: h\r\n\r\n", true).status, 500);
  EXPECT_EQ(client.ReadSome(1), "");
}

TEST(HttpServerTest, TellsAClientToContinue) {
  TestServer test;
  RawClient client(test.port());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100);
  client.Send("hello");
  EXPECT_EQ(client.Read().body, "POST hello");
  EXPECT_EQ(client.Ask(Post("/echo", "there", "Expect: 100-continue\r\n")).body, "POST there")
      << "one that does not wait needs no word";
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_EQ(client.Read().status, 413);
  EXPECT_TRUE(client.Closes());
}

TEST(HttpServerTest, ReadsChunkedBodies) {
  TestServer test;
  RawClient client(test.port());
  const std::string head = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : head + "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n") client.Send(std::string(1, c));
  EXPECT_EQ(client.Read().body, "POST hello!");
  EXPECT_EQ(client.Ask(head + "0\r\n\r\n" + Get("/echo")).body, "POST ");
  EXPECT_EQ(client.Read().body, "GET ");
}

TEST(HttpServerTest, LeavesMethodsToTheHandler) {
  TestServer test;
  RawClient client(test.port());
  EXPECT_EQ(client.Ask("BREW /echo HTTP/1.1\r\nHost: h\r\n\r\n").body, "BREW ");
  EXPECT_EQ(client.Ask("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").body, "*");
}

TEST(HttpServerTest, RefusesWhatIsNoRequestInTheGivenShape) {
  TestServer test({.header_bytes = 2000, .body_bytes = 100});
  struct Case {
    std::string request;
    int status;
  };
  for (const Case& c : {Case{"what\r\n\r\n", 400}, Case{"GET / HTTP/1.1\r\n\r\n", 400},
                        Case{"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505},
                        Case{Get("/", "X: " + std::string(3000, 'x') + "\r\n"), 431},
                        Case{Post("/", std::string(101, 'x')), 413}}) {
    RawClient client(test.port());
    const RawAnswer answer = client.Ask(c.request);
    EXPECT_EQ(answer.status, c.status) << c.request;
    EXPECT_EQ(answer.Header("Content-Type"), "application/json");
    EXPECT_EQ(answer.Header("Connection"), "close");
    EXPECT_THAT(answer.body, StartsWith("{\"error\":{\"message\":\""));
    EXPECT_THAT(answer.body, HasSubstr(std::to_string(c.status)));
    EXPECT_TRUE(client.Closes());
  }
  EXPECT_EQ(test.server->counters().bad_requests, 5u);
  EXPECT_EQ(test.server->counters().requests, 0u);
}

TEST(HttpServerTest, RefusesALargeBodyBeforeItComes) {
  TestServer test;
  RawClient client(test.port());
  const RawAnswer answer =
      client.Ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000000\r\n\r\n");
  EXPECT_EQ(answer.status, 413);
  // A client that sends first and reads afterwards still finds the answer.
  RawClient sends(test.port());
  sends.Send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000000\r\n\r\n");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sends.Send(std::string(64 << 10, 'x'))) << i;
  EXPECT_EQ(sends.Read().status, 413);
}

TEST(HttpServerTest, ARequestThatNobodyAnswersIsAnError) {
  TestServer test;
  for (const char* path : {"/drop", "/throw"}) {
    RawClient client(test.port());
    const RawAnswer answer = client.Ask(Get(path));
    EXPECT_EQ(answer.status, 500) << path;
    EXPECT_THAT(answer.body, StartsWith("{\"error\":"));
  }
  RawClient client(test.port());
  client.Send(Get("/hold"));
  auto exchange = test.Held();
  ASSERT_NE(exchange, nullptr);
  exchange->BeginStream(200, {});
  exchange->Write("part");
  exchange.reset();
  const RawAnswer answer = client.Read();
  EXPECT_EQ(answer.body, "part");
  EXPECT_FALSE(answer.complete) << "the client must see that something is missing";
}

TEST(HttpServerTest, ManyClientsAndThreadsAtOnce) {
  TestServer test;
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      RawClient client(test.port());
      for (int i = 0; i < 50; ++i) {
        const std::string body = std::to_string(c * 1000 + i);
        ASSERT_EQ(client.Ask(Post("/echo", body)).body, "POST " + body);
      }
    });
  }
  for (std::thread& thread : clients) thread.join();
  EXPECT_EQ(test.server->counters().requests, 400u);
}

TEST(HttpServerTest, WhoIsRefusedSendsNoBody) {
  TestServer server;
  RawClient client(server.server->port());
  client.Send("POST /secret HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(client.Read().status, 401);  // before any of the body has come
  EXPECT_TRUE(client.Closes());
  EXPECT_EQ(
      RawClient(server.server->port()).Ask(Post("/throws-early", std::string(100'000, 'x'))).status,
      500);
  RawClient known(server.server->port());
  EXPECT_NE(known.Ask(Post("/secret", std::string(100'000, 'x'), "Key: k\r\n")).status, 401);
}

TEST(HttpServerTest, BodiesOfAllClientsTogetherHaveABound) {
  HttpLimits limits;
  limits.all_body_bytes = 150'000;
  TestServer server(limits);
  const std::string head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 120000\r\n\r\n";
  const std::string most(100'000, 'x');
  RawClient slow(server.server->port()), late(server.server->port());
  slow.Send(head + most);
  ASSERT_TRUE(Soon([&] { return server.server->counters().bytes_in >= most.size(); }));
  late.Send(head + most);
  EXPECT_EQ(late.Read().status, 503);
  slow.Send(std::string(20'000, 'x'));
  EXPECT_NE(slow.Read().status, 503);
  RawClient again(server.server->port());
  EXPECT_NE(again.Ask(head + std::string(120'000, 'x')).status, 503);
}

}  // namespace
}  // namespace trine::server
