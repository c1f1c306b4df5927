#include "plugins/child_process.h"

#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Ran {
  ChildResult result;
  std::vector<std::string> lines;
  std::string end;
  double seconds;
};

Ran Shell(const std::string& script, milliseconds timeout = milliseconds(20000),
          milliseconds idle = milliseconds(0)) {
  Ran ran;
  ChildOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.timeout = timeout;
  options.idle_timeout = idle;
  options.on_line = [&](std::string_view line) { ran.lines.emplace_back(line); };
  const auto begin = std::chrono::steady_clock::now();
  ran.result = RunChild(options);
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ran.end = DescribeEnd(ran.result, options);
  return ran;
}

TEST(ChildProcessTest, TakesLinesOfTheReportOnly) {
  const Ran ran = Shell("echo out; echo err >&2; echo one >&3; echo two >&3; printf half >&3");
  EXPECT_TRUE(ran.result.Ok()) << ran.end;
  EXPECT_THAT(ran.lines, ElementsAre("one", "two"));
  EXPECT_EQ(ran.result.stderr_tail, "err\n");
}

TEST(ChildProcessTest, TellsExitCodeAndSignal) {
  EXPECT_EQ(Shell("exit 3").end, "exited with code 3");
  EXPECT_THAT(Shell("kill -SEGV $$").end, HasSubstr("SIGSEGV"));
  EXPECT_THAT(Shell("kill -USR1 $$").end, HasSubstr("signal"));
}

TEST(ChildProcessTest, EndsAHangingChild) {
  const Ran ran = Shell("echo one >&3; sleep 60", milliseconds(1500));
  EXPECT_EQ(ran.result.end, ChildResult::End::kTimedOut);
  EXPECT_EQ(ran.end, "did not answer within 1500 ms");
  EXPECT_THAT(ran.lines, ElementsAre("one"));
  EXPECT_LT(ran.seconds, 10);
}

TEST(ChildProcessTest, EndsASilentChild) {
  const Ran ran = Shell("while :; do sleep 0.05; done", milliseconds(60000), milliseconds(300));
  EXPECT_EQ(ran.result.end, ChildResult::End::kTimedOut);
  EXPECT_LT(ran.seconds, 10);
}

TEST(ChildProcessTest, TalkingKeepsAChildAlive) {
  const Ran ran = Shell("for i in 1 2 3 4 5 6; do sleep 0.2; echo $i >&3; done",
                        milliseconds(60000), milliseconds(5000));
  EXPECT_TRUE(ran.result.Ok()) << ran.end;
  EXPECT_EQ(ran.lines.size(), 6u);
}

// Processes that a child starts must not outlive it, nor hold its pipe open beyond the time limit.
TEST(ChildProcessTest, GrandchildrenGoWithIt) {
  const Ran ran = Shell("sleep 60 & echo $! >&3; exec 3>&-; sleep 60", milliseconds(1500));
  ASSERT_EQ(ran.lines.size(), 1u);
  const pid_t grandchild = static_cast<pid_t>(std::stoi(ran.lines[0]));
  for (int i = 0; i < 200 && kill(grandchild, 0) == 0; ++i) {
    // The grandchild is a zombie until its new parent reaps it. It is enough that it does not run.
    std::this_thread::sleep_for(milliseconds(10));
    char state = 0;
    if (FILE* f = std::fopen(("/proc/" + ran.lines[0] + "/stat").c_str(), "r")) {
      if (std::fscanf(f, "%*d %*s %c", &state) != 1) state = 0;
      std::fclose(f);
    }
    if (state == 'Z' || state == 0) break;
    ASSERT_LT(i, 199) << "the grandchild is still running";
  }
  EXPECT_LT(ran.seconds, 10);
}

TEST(ChildProcessTest, GrandchildHoldingThePipeCostsNoTime) {
  const Ran ran = Shell("echo one >&3; sleep 60 & exit 0", milliseconds(30000));
  EXPECT_TRUE(ran.result.Ok()) << ran.end;
  EXPECT_THAT(ran.lines, ElementsAre("one"));
  EXPECT_LT(ran.seconds, 5);
}

TEST(ChildProcessTest, MissingProgramIsAnAnswer) {
  ChildOptions options;
  options.argv = {"/nowhere/trine-probe"};
  const ChildResult result = RunChild(options);
  EXPECT_EQ(result.end, ChildResult::End::kNotStarted);
  EXPECT_THAT(DescribeEnd(result, options), HasSubstr("/nowhere/trine-probe"));
  EXPECT_EQ(RunChild({}).end, ChildResult::End::kNotStarted);
}

// If a host ignores SIGCHLD, the system reaps its children. Then the exit status is lost, but the
// report is not.
TEST(ChildProcessTest, HostMayIgnoreSigchld) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  const Ran ran = Shell("echo one >&3; exit 3");
  const Ran hung = Shell("sleep 60", milliseconds(300));
  signal(SIGCHLD, before);
  EXPECT_EQ(ran.result.end, ChildResult::End::kUnknown);
  EXPECT_THAT(ran.lines, ElementsAre("one"));
  EXPECT_THAT(ran.end, HasSubstr("SIGCHLD"));
  EXPECT_EQ(hung.result.end, ChildResult::End::kTimedOut);
}

TEST(ChildProcessTest, ManyAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([i] {
      const Ran ran = Shell("echo " + std::to_string(i) + " >&3");
      EXPECT_TRUE(ran.result.Ok()) << ran.end;
      EXPECT_THAT(ran.lines, ElementsAre(std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ChildProcessTest, FloodsAreBounded) {
  const Ran ran = Shell(
      "head -c 3000000 /dev/zero | tr '\\0' x >&3; "
      "head -c 300000 /dev/zero | tr '\\0' e >&2; echo >&3; echo end >&3");
  EXPECT_TRUE(ran.result.Ok()) << ran.end;
  EXPECT_EQ(ran.lines.back(), "end");
  EXPECT_LE(ran.result.stderr_tail.size(), 8192u);
}

}  // namespace
}  // namespace trine
