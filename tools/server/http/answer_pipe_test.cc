#include "tools/server/http/answer_pipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace trine::server {
namespace {

using State = AnswerPipe::State;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Piped {
  explicit Piped(AnswerForm form = {}, size_t most = 10000)
      : pipe(std::make_shared<AnswerPipe>(form, most, [this] { ++woken; })) {}
  State Take() {
    out.clear();
    return pipe->Take(&out);
  }
  std::atomic<int> woken{0};
  std::shared_ptr<AnswerPipe> pipe;
  std::string out;
};

TEST(AnswerPipeTest, AWholeAnswer) {
  Piped p;
  EXPECT_EQ(p.Take(), State::kOpen);
  EXPECT_TRUE(p.pipe->Send(200, {{"X", "1"}}, "body"));
  EXPECT_EQ(p.woken, 1);
  EXPECT_EQ(p.Take(), State::kComplete);
  EXPECT_THAT(p.out, StartsWith("HTTP/1.1 200 OK\r\nDate: "));
  EXPECT_THAT(p.out, HasSubstr("GMT\r\nX: 1\r\nContent-Length: 4\r\nConnection: keep-alive\r\n"));
  EXPECT_THAT(p.out, EndsWith("\r\n\r\nbody"));
  EXPECT_FALSE(p.pipe->Send(200, {}, "again"));
  EXPECT_EQ(p.Take(), State::kComplete);
  EXPECT_EQ(p.out, "");
}

TEST(AnswerPipeTest, HeadersCannotBreakOut) {
  Piped p;
  p.pipe->Send(200, {{"A", "x\r\nB: y"}, {"C\r\nD", "z"}, {"Content-Length", "99"}, {"E:", "f"}},
               "");
  p.Take();
  EXPECT_THAT(p.out, HasSubstr("\r\nA: x  B: y\r\nContent-Length: 0\r\nConnection:"));
}

TEST(AnswerPipeTest, LeavesOutBodiesThatMayNotBe) {
  Piped head({.head_only = true});
  head.pipe->Send(200, {}, "body");
  head.Take();
  EXPECT_THAT(head.out, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(head.out, EndsWith("\r\n\r\n"));

  Piped none;
  none.pipe->Send(204, {}, "body");
  none.Take();
  EXPECT_THAT(none.out, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(none.out, EndsWith("\r\n\r\n"));

  Piped streamed({.head_only = true});
  EXPECT_TRUE(streamed.pipe->BeginStream(200, {}));
  EXPECT_TRUE(streamed.pipe->Write("x"));
  streamed.pipe->End();
  EXPECT_EQ(streamed.Take(), State::kComplete);
  EXPECT_THAT(streamed.out, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(streamed.out, EndsWith("\r\n\r\n"));
  EXPECT_THAT(streamed.out, Not(HasSubstr("0\r\n\r\n")));
}

TEST(AnswerPipeTest, AStreamIsChunked) {
  Piped p;
  EXPECT_FALSE(p.pipe->Write("too early"));
  EXPECT_TRUE(p.pipe->BeginStream(200, {}));
  EXPECT_FALSE(p.pipe->BeginStream(200, {}));
  EXPECT_FALSE(p.pipe->Send(200, {}, ""));
  EXPECT_TRUE(p.pipe->Write("0123456789abcdef"));
  EXPECT_TRUE(p.pipe->Write(""));
  EXPECT_EQ(p.Take(), State::kOpen);
  EXPECT_THAT(p.out, EndsWith("\r\n\r\n10\r\n0123456789abcdef\r\n"));
  p.pipe->End();
  EXPECT_EQ(p.Take(), State::kComplete);
  EXPECT_EQ(p.out, "0\r\n\r\n");
  EXPECT_FALSE(p.pipe->Write("too late"));
  EXPECT_TRUE(p.pipe->keep_alive());
}

TEST(AnswerPipeTest, AStreamForHttp10EndsWithItsConnection) {
  Piped p({.http_1_0 = true});
  p.pipe->BeginStream(200, {});
  p.pipe->Write("ab");
  p.pipe->Write("c");
  p.pipe->End();
  EXPECT_EQ(p.Take(), State::kComplete);
  EXPECT_THAT(p.out, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(p.out, EndsWith("\r\n\r\nabc"));
  EXPECT_FALSE(p.pipe->keep_alive());
}

TEST(AnswerPipeTest, WaitsForRoomAndIsLetGoByIt) {
  Piped p({}, 100);
  p.pipe->BeginStream(200, {});
  p.Take();
  p.pipe->Sent(p.out.size());
  ASSERT_TRUE(p.pipe->Write(std::string(200, 'x')));  // a single write may exceed the limit
  p.Take();
  std::atomic<bool> written = false;
  std::thread writer([&] {
    EXPECT_TRUE(p.pipe->Write("more"));
    written = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(written);
  p.pipe->Sent(50);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(written) << "what was taken and not sent is still waiting";
  p.pipe->Sent(p.out.size() - 50);
  writer.join();
  EXPECT_EQ(p.Take(), State::kOpen);
  EXPECT_EQ(p.out, "4\r\nmore\r\n");
}

TEST(AnswerPipeTest, WhoeverWaitsIsToldThatTheClientHasGone) {
  for (const bool detached : {false, true}) {
    Piped p({}, 10);
    int told = 0;
    p.pipe->OnGone([&] { ++told; });
    p.pipe->BeginStream(200, {});
    std::thread writer([&] { EXPECT_FALSE(p.pipe->Write("more")); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(p.pipe->gone());
    detached ? p.pipe->Detach() : p.pipe->SetGone();
    writer.join();
    EXPECT_TRUE(p.pipe->gone());
    EXPECT_EQ(told, 1);
    p.pipe->Detach();
    EXPECT_EQ(told, 1) << "once";
    p.pipe->OnGone([&] { told += 10; });
    EXPECT_EQ(told, 11) << "at once";
  }
}

TEST(AnswerPipeTest, AStreamThatLostAPartHasNoEnd) {
  Piped p;
  p.pipe->BeginStream(200, {});
  p.pipe->SetGone();
  EXPECT_FALSE(p.pipe->Write("x"));
  p.pipe->End();
  EXPECT_EQ(p.Take(), State::kCut);
  EXPECT_THAT(p.out, Not(HasSubstr("0\r\n\r\n")));
}

TEST(AnswerPipeTest, AHalfClosedClientStillGetsAWholeAnswer) {
  Piped p;
  p.pipe->SetGone();
  EXPECT_FALSE(p.pipe->BeginStream(200, {}));
  EXPECT_TRUE(p.pipe->Send(499, {}, ""));
  EXPECT_EQ(p.Take(), State::kComplete);
  EXPECT_THAT(p.out, StartsWith("HTTP/1.1 499 Client Closed Request\r\n"));
}

TEST(AnswerPipeTest, NothingIsTakenForAConnectionThatIsNoMore) {
  Piped p;
  p.pipe->Detach();
  EXPECT_FALSE(p.pipe->Send(200, {}, "x"));
  EXPECT_FALSE(p.pipe->BeginStream(200, {}));
  AnswerPipe::HandOut(p.pipe, {}).reset();
  EXPECT_EQ(p.woken, 0);
}

TEST(AnswerPipeTest, GoneIsAskedOnlyUntilAllIsSent) {
  Piped p;
  int told = 0;
  p.pipe->OnGone([&] { ++told; });
  p.pipe->Send(200, {}, "x");
  p.Take();
  p.pipe->Sent(p.out.size());
  p.pipe->Detach();
  EXPECT_FALSE(p.pipe->gone());
  EXPECT_EQ(told, 0);

  Piped unsent;
  unsent.pipe->Send(200, {}, "x");
  unsent.Take();
  unsent.pipe->Sent(unsent.out.size() - 1);
  unsent.pipe->Detach();
  EXPECT_TRUE(unsent.pipe->gone());
}

TEST(AnswerPipeTest, ReleasesTheCallbackWithTheAnswer) {
  Piped p;
  auto held = std::make_shared<int>(0);
  p.pipe->OnGone([held] { ++*held; });
  EXPECT_EQ(held.use_count(), 2);
  p.pipe->Send(200, {}, "x");
  EXPECT_EQ(held.use_count(), 1);
}

TEST(AnswerPipeTest, AnExchangeThatIsDroppedIsSeen) {
  Piped unanswered;
  AnswerPipe::HandOut(unanswered.pipe, {});
  EXPECT_EQ(unanswered.woken, 1);
  EXPECT_EQ(unanswered.Take(), State::kUnanswered);

  Piped cut;
  {
    const auto exchange = AnswerPipe::HandOut(cut.pipe, {});
    EXPECT_TRUE(exchange->BeginStream(200, {}));
  }
  EXPECT_EQ(cut.Take(), State::kCut);

  Piped complete;
  {
    const auto exchange = AnswerPipe::HandOut(complete.pipe, {});
    EXPECT_TRUE(exchange->Send(200, {}, "x"));
  }
  EXPECT_EQ(complete.Take(), State::kComplete);
}

TEST(AnswerPipeTest, ClosesWhenAsked) {
  Piped by_header;
  by_header.pipe->Send(200, {{"connection", "Close"}}, "");
  by_header.Take();
  EXPECT_THAT(by_header.out, HasSubstr("Connection: close\r\n"));
  EXPECT_FALSE(by_header.pipe->keep_alive());

  Piped by_connection;
  by_connection.pipe->CloseAfter();
  by_connection.pipe->Send(200, {}, "");
  by_connection.Take();
  EXPECT_THAT(by_connection.out, HasSubstr("Connection: close\r\n"));
}

}  // namespace
}  // namespace trine::server
