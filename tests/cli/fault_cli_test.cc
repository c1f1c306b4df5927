// TRINE_FAULT as a user meets it.
#include <chrono>
#include <string>

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

// Nothing watches a call yet: a hang is the user's to end.
TEST_F(FaultCliTest, AHangCanBeInterrupted) {
  const Output output = Shell("TRINE_FAULT=cpu:hang@run=3 timeout -s INT -k 5 3 '" TRINE_PROGRAM
                              "' generate -p Once -n 12 --temp 0 </dev/null");
  EXPECT_THAT(output.errors, HasSubstr("cpu:hang@run=3"));
  EXPECT_NE(output.code, 0);
}

}  // namespace
}  // namespace trine
