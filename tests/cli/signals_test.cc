#include "tools/cli/terminal/signals.h"

#include <signal.h>

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

}  // namespace
}  // namespace trine
