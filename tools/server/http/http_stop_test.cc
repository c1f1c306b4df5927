// How a server starts and stops, and that it leaves nothing behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tools/server/http/http_server.h"
#include "tools/server/http/raw_client.h"
#include "tools/server/http/test_server.h"

namespace trine::server {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

size_t CountIn(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(HttpStopTest, ExchangesOutliveTheServer) {
  std::shared_ptr<Exchange> held, streaming, waiting;
  std::atomic<int> told = 0;
  std::thread writer;
  {
    TestServer test({.waiting_bytes = 1000});
    RawClient first(test.port()), second(test.port()), third(test.port(), "127.0.0.1", 4096);
    for (auto [client, exchange] :
         {std::pair{&first, &held}, std::pair{&second, &streaming}, std::pair{&third, &waiting}}) {
      client->Send(Get("/hold"));
      *exchange = test.Held();
      ASSERT_NE(*exchange, nullptr);
      (*exchange)->OnGone([&] { ++told; });
    }
    ASSERT_TRUE(streaming->BeginStream(200, {}));
    ASSERT_TRUE(waiting->BeginStream(200, {}));
    writer = std::thread([&] {
      while (waiting->Write(std::string(100'000, 'x'))) {
      }
    });
    std::this_thread::sleep_for(milliseconds(100));
    test.server->Stop();
    EXPECT_TRUE(first.Closes());
    test.server->Stop();  // does nothing more
  }
  writer.join();
  EXPECT_EQ(told, 3);
  for (const auto& exchange : {held, streaming, waiting}) EXPECT_TRUE(exchange->gone());
  EXPECT_FALSE(held->Send(200, {}, "late"));
  EXPECT_FALSE(streaming->Write("late"));
  streaming->End();
  int at_once = 0;
  held->OnGone([&] { ++at_once; });
  EXPECT_EQ(at_once, 1);
}

TEST(HttpStopTest, ACallbackThatThrowsHarmsNobody) {
  TestServer test;
  RawClient leaves(test.port()), stays(test.port());
  leaves.Send(Get("/hold"));
  const auto first = test.Held();
  stays.Send(Get("/hold"));
  const auto second = test.Held();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  for (const auto& exchange : {first, second}) {
    exchange->OnGone([] { throw std::runtime_error("on purpose"); });
  }
  leaves.Reset();
  EXPECT_TRUE(Soon([&] { return test.server->counters().open == 1; }));
  test.server->Stop();
  EXPECT_TRUE(second->gone());
  EXPECT_EQ(test.server->counters().open, 0u);
}

TEST(HttpStopTest, LeavesNoThreadAndNoDescriptor) {
  const size_t descriptors = CountIn("/proc/self/fd");
  const size_t threads = CountIn("/proc/self/task");
  std::vector<std::shared_ptr<Exchange>> held;
  for (int round = 0; round < 5; ++round) {
    TestServer test;
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<RawClient>(test.port()));
      clients.back()->Send(i % 4 == 0 ? Get("/hold") : i % 4 == 1 ? Get("/echo") : "GET");
    }
    for (int i = 0; i < 5; ++i) held.push_back(test.Held());
  }
  EXPECT_EQ(CountIn("/proc/self/fd"), descriptors);
  // A thread that was joined may be listed a moment longer, here and in the count before.
  EXPECT_TRUE(Soon([&] { return CountIn("/proc/self/task") <= threads; }));
}

TEST(HttpStopTest, MayStopWhileEverythingHappens) {
  for (int round = 0; round < 10; ++round) {
    TestServer test;
    const uint16_t port = test.port();
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!over) {
          RawClient client(port);
          if (client.connected()) client.Ask(Get("/echo") + Get("/echo"));
        }
      });
    }
    threads.emplace_back([&] {
      RawClient client(port);
      client.Send(Get("/hold"));
      const auto exchange = test.Held();
      if (exchange == nullptr || !exchange->BeginStream(200, {})) return;
      while (exchange->Write("data")) {
      }
    });
    std::this_thread::sleep_for(milliseconds(20 + round));
    std::thread stops([&] { test.server->Stop(); });
    test.server->Stop();
    stops.join();
    over = true;
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(HttpStopTest, DrainsWhatIsUnderWay) {
  TestServer test;
  RawClient idle(test.port()), held(test.port()), streamed(test.port()), fresh(test.port());
  EXPECT_EQ(idle.Ask(Get("/echo")).status, 200);
  held.Send(Get("/hold"));
  auto first = test.Held();
  streamed.Send(Get("/hold"));
  auto second = test.Held();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  second->BeginStream(200, {});
  RawClient half(test.port());
  const uint64_t before = test.server->counters().bytes_in;
  const std::string part = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel";
  half.Send(part);
  EXPECT_TRUE(Soon([&] { return test.server->counters().bytes_in == before + part.size(); }));
  EXPECT_TRUE(Soon([&] { return test.server->counters().open == 5; }));

  test.server->StopAccepting();
  EXPECT_TRUE(idle.Closes());
  EXPECT_TRUE(fresh.Closes());
  EXPECT_FALSE(RawClient(test.port()).connected());
  EXPECT_FALSE(first->gone());
  EXPECT_FALSE(test.server->Drain(milliseconds(50)));
  first->Send(200, {}, "done");
  second->Write("done");
  EXPECT_FALSE(test.server->Drain(milliseconds(50)));
  second->End();
  EXPECT_FALSE(test.server->Drain(milliseconds(50)));
  const RawAnswer last = half.Ask("lo");
  EXPECT_EQ(last.body, "POST hello");
  EXPECT_EQ(last.Header("Connection"), "close");
  EXPECT_TRUE(test.server->Drain(std::chrono::seconds(20)));
  const RawAnswer answer = held.Read();
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_TRUE(streamed.Read().complete);
  EXPECT_TRUE(streamed.Closes());
}

TEST(HttpStopTest, RefusesNewClientsAtOnceHoweverBusyItsThreadsAre) {
  std::promise<void> entered, leave;
  HttpServerOptions options;
  options.threads = 1;
  auto server = HttpServer::Start(options, [&](std::shared_ptr<Exchange> exchange) {
    entered.set_value();
    leave.get_future().wait();
    exchange->Send(200, {}, "done");
  });
  ASSERT_TRUE(server.ok()) << server.status();
  RawClient busy((*server)->port());
  busy.Send(Get("/"));
  entered.get_future().wait();
  (*server)->StopAccepting();
  EXPECT_FALSE(RawClient((*server)->port()).connected());
  (*server)->StopAccepting();
  leave.set_value();
  EXPECT_EQ(busy.Read().body, "done");
  EXPECT_TRUE(busy.Closes());
  EXPECT_EQ((*server)->counters().accept_errors, 0);
}

TEST(HttpStopTest, ListensOnWhatItIsTold) {
  TestServer four;
  EXPECT_EQ(four.server->address(), "127.0.0.1:" + std::to_string(four.port()));
  EXPECT_EQ(RawClient(four.port()).Ask(Get("/peer")).body, "127.0.0.1");

  TestServer name({}, "localhost");
  ASSERT_TRUE(name.status.ok()) << name.status;
  EXPECT_EQ(RawClient(name.port(), "localhost").Ask(Get("/echo")).status, 200);

  for (const char* host : {"::1", "[::1]"}) {
    TestServer six({}, host);
    if (!six.status.ok() && access("/proc/net/if_inet6", R_OK) != 0) {
      GTEST_SKIP() << "no IPv6 here";
    }
    ASSERT_TRUE(six.status.ok()) << six.status;
    EXPECT_EQ(six.server->address(), "[::1]:" + std::to_string(six.port()));
    EXPECT_EQ(RawClient(six.port(), "::1").Ask(Get("/peer")).body, "::1");
  }
  TestServer both({}, "::");
  ASSERT_TRUE(both.status.ok()) << both.status;
  EXPECT_EQ(RawClient(both.port(), "127.0.0.1").Ask(Get("/peer")).body, "127.0.0.1");
}

TEST(HttpStopTest, SaysWhyItCannotListen) {
  TestServer first;
  TestServer second({}, "127.0.0.1", first.port());
  EXPECT_EQ(second.status.code(), absl::StatusCode::kAlreadyExists);
  const std::string port = std::to_string(first.port());
  EXPECT_THAT(std::string(second.status.message()), HasSubstr("127.0.0.1 port " + port));
  EXPECT_THAT(std::string(second.status.message()), HasSubstr("ddress already in use"));
  for (const char* host : {"", "no.such.host.invalid", "192.0.2.1", "1.2.3.4.5"}) {
    TestServer nowhere({}, host, 12345);
    EXPECT_FALSE(nowhere.status.ok()) << host;
    EXPECT_THAT(std::string(nowhere.status.message()),
                HasSubstr(std::string(host) + " port 12345"));
  }
  // The port is free again at once, though the server closed a connection to it.
  RawClient client(first.port());
  client.Ask(Get("/echo", "Connection: close\r\n"));
  first.server->Stop();
  first.server.reset();
  TestServer again({}, "127.0.0.1", static_cast<uint16_t>(std::stoi(port)));
  EXPECT_TRUE(again.status.ok()) << again.status;
}

TEST(HttpStopTest, GoesOnWhenDescriptorsRunOut) {
  TestServer test;
  RawClient before(test.port()), waits(test.port());
  EXPECT_EQ(before.Ask(Get("/echo")).status, 200);
  EXPECT_TRUE(Soon([&] { return test.server->counters().open == 2; }));
  RawClient late(test.port());
  EXPECT_TRUE(Soon([&] { return test.server->counters().open == 3; }));
  // Uses up all file descriptors but one, which the client's own end needs.
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit low = old;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<int> taken;
  for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
  close(taken.back());
  taken.pop_back();
  {
    RawClient unlucky(test.port());
    EXPECT_TRUE(unlucky.connected());
    EXPECT_TRUE(Soon([&] { return test.server->counters().accept_errors > 0; }));
    EXPECT_EQ(before.Ask(Get("/echo")).status, 200) << "the others go on";
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_LT(test.server->counters().accept_errors, 50u) << "it does not spin";
    for (const int fd : taken) close(fd);
    EXPECT_EQ(unlucky.Ask(Get("/echo")).status, 200) << "it was only late";
  }
  setrlimit(RLIMIT_NOFILE, &old);
}

}  // namespace
}  // namespace trine::server
