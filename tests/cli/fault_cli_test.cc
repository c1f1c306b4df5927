// Tests TRINE_FAULT from outside.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class FaultCliTest : public CliFixture {
 protected:
  Output Generate(const std::string& faults) {
    return Trine("generate -p 'Once upon a time' -n 12 --temp 0", "TRINE_FAULT='" + faults + "'");
  }
};

TEST_F(FaultCliTest, FaultsThatDoNotComeChangeNothing) {
  const Output plain = Trine("generate -p 'Once upon a time' -n 12 --temp 0 --logits-hash --json");
  const Output wrapped = Trine("generate -p 'Once upon a time' -n 12 --temp 0 --logits-hash --json",
                               "TRINE_FAULT='cpu:lost@run=1000;*:garbage@run=1000'");
  const auto hash = [](const std::string& text) {
    const size_t at = text.find("logits_hash");
    EXPECT_NE(at, std::string::npos) << text;
    return text.substr(at, 40);
  };
  EXPECT_EQ(wrapped.code, 0) << wrapped.errors;
  EXPECT_EQ(hash(wrapped.text), hash(plain.text));
}

TEST_F(FaultCliTest, ALossEndsTheStoryWithAReason) {
  const Output plain = Trine("generate -p 'Once upon a time' -n 12 --temp 0");
  const Output lost = Generate("cpu:lost@token=6");
  EXPECT_EQ(lost.code, 1) << lost.errors;
  EXPECT_THAT(lost.errors, HasSubstr("injected fault on cpu: cpu:lost@token=6"));
  EXPECT_THAT(lost.errors, HasSubstr("the device is lost"));
  std::string told = lost.text;
  while (!told.empty() && told.back() == '\n') told.pop_back();
  EXPECT_GT(told.size(), std::string("Once upon a time").size());
  EXPECT_THAT(plain.text, StartsWith(told));
}

TEST_F(FaultCliTest, EveryKindEndsInOrder) {
  for (const char* faults :
       {"cpu:oom@load", "cpu:oom@plan", "cpu:oom@run=3", "cpu:lost@load", "cpu:lost@shutdown",
        "cpu:timeout=50ms@run=2", "cpu:timeout=50ms@run=2,in=team", "cpu:garbage@run=2+",
        "cpu:garbage=status@run=2", "cpu:garbage=size@query", "*:chaos@random,rate=0.2,seed=5"}) {
    const Output output = Generate(faults);
    EXPECT_THAT(output.code, ::testing::AnyOf(0, 1)) << faults << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr("injected fault on cpu")) << faults;
  }
}

TEST_F(FaultCliTest, WhatCannotBeReadIsNamed) {
  const Output output = Generate("cpu:lost@lunch=1");
  EXPECT_EQ(output.code, 1);
  EXPECT_EQ(output.text, "");
  EXPECT_THAT(output.errors, StartsWith("trine: "));
  EXPECT_THAT(output.errors, HasSubstr("TRINE_FAULT: in 'cpu:lost@lunch=1': 'lunch': no moment"));
}

TEST_F(FaultCliTest, ADeviceThatIsNotThereIsAWarning) {
  const Output output = Generate("ROCm7:lost@run=1");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("fault 'ROCm7:lost@run=1': there is no such device"));
}

// Before the device's timeout, the user can end the program with a second interrupt.
TEST_F(FaultCliTest, AHangCanBeInterrupted) {
  const std::string errors = (folder_ / "hang").string();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    setenv("TRINE_FAULT", "cpu:hang@run=3", 1);
    if (std::freopen(errors.c_str(), "w", stderr) == nullptr) _exit(99);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(99);
    execl(TRINE_PROGRAM, TRINE_PROGRAM, "generate", "-p", "Once", "--temp", "0", nullptr);
    _exit(99);
  }
  const auto said = [&] {
    std::stringstream text;
    text << std::ifstream(errors).rdbuf();
    return text.str().find("cpu:hang@run=3") != std::string::npos;
  };
  int status = 0;
  while (!said()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "it ended by itself";
  }
  kill(child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(waitpid(child, &status, WNOHANG), 0);  // it can't stop: its run hangs
  kill(child, SIGINT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

}  // namespace
}  // namespace trine
