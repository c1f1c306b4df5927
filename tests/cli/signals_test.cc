#include "tools/cli/terminal/signals.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace trine {
namespace {

int first_count = 0;
int second_count = 0;
void First(int) { ++first_count; }
void Second(int) { ++second_count; }

void Set(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ASSERT_EQ(sigaction(number, &action, nullptr), 0);
}

void (*HandlerOf(int number))(int) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler;
}

TEST(ScopedSignalsTest, PutsBackWhatWasThere) {
  Set(SIGUSR1, First);
  Set(SIGUSR2, SIG_DFL);
  {
    const ScopedSignals signals({SIGUSR1, SIGUSR2}, Second);
    raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGUSR2);
  }
  EXPECT_EQ(first_count, 0);
  EXPECT_EQ(second_count, 3);
  EXPECT_EQ(HandlerOf(SIGUSR1), First);
  EXPECT_EQ(HandlerOf(SIGUSR2), SIG_DFL);
}

TEST(ScopedSignalsTest, WhatIsIgnoredStaysIgnored) {
  Set(SIGUSR1, SIG_IGN);
  {
    const ScopedSignals signals({SIGUSR1}, Second);
    EXPECT_EQ(HandlerOf(SIGUSR1), SIG_IGN);
  }
  EXPECT_EQ(HandlerOf(SIGUSR1), SIG_IGN);
}

TEST(InterruptFlagTest, IsRaisedByWhatWouldEndTheProgram) {
  Set(SIGHUP, SIG_IGN);
  {
    const InterruptFlag flag;
    EXPECT_EQ(HandlerOf(SIGXFSZ), SIG_IGN);
    raise(SIGHUP);
    EXPECT_FALSE(flag.raised());
    raise(SIGTERM);
    EXPECT_TRUE(flag.raised());
  }
  for (const int number : {SIGINT, SIGTERM, SIGXFSZ}) EXPECT_EQ(HandlerOf(number), SIG_DFL);
}

int stops = 0;

TEST(OrderlyEndTest, TheFirstSignalStopsAndASecondAtOnceIsIgnored) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) Set(number, SIG_DFL);
  {
    const OrderlyEnd end([] { ++stops; });
    pollfd wake{end.wake_file(), POLLIN, 0};
    EXPECT_FALSE(end.raised());
    EXPECT_EQ(poll(&wake, 1, 0), 0);
    for (const int number : {SIGTERM, SIGHUP, SIGINT}) raise(number);
    EXPECT_TRUE(end.raised());
    EXPECT_EQ(stops, 1);
    EXPECT_EQ(poll(&wake, 1, 0), 1);
  }
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) EXPECT_EQ(HandlerOf(number), SIG_DFL);
}

TEST(OrderlyEndDeathTest, ASecondSignalEndsTheProgram) {
  EXPECT_EXIT(
      {
        const OrderlyEnd end;
        raise(SIGTERM);
        usleep(400'000);
        raise(SIGTERM);
      },
      ::testing::ExitedWithCode(kInterrupted), "");
}

}  // namespace
}  // namespace trine
