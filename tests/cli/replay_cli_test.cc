// Tests generate --capture, replay and bench --branching from outside.
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class ReplayCliTest : public CliFixture {
 protected:
  std::string path() const { return (folder_ / "story.capture").string(); }
  Output Capture(const std::string& more) {
    return Trine("generate -p 'Once upon a time' -n 6 --temp 0 --capture " + path() + " " + more);
  }
};

TEST_F(ReplayCliTest, ACaptureIsIdentical) {
  const Output plain = Trine("generate -p 'Once upon a time' -n 6 --temp 0");
  for (const char* more : {"", "--capture-level ops", "--capture-values"}) {
    const Output captured = Capture(more);
    EXPECT_EQ(captured.code, 0) << captured.errors;
    EXPECT_EQ(captured.text, plain.text);
    for (const char* how : {"", "--ops", "-t 1"}) {
      const Output replay = Trine("replay " + path() + " " + how);
      EXPECT_EQ(replay.code, 0) << replay.text << replay.errors;
      EXPECT_THAT(replay.text, StartsWith("identical: 6 passes, "));
    }
  }
  EXPECT_EQ(Leftovers(), 0);
}

TEST_F(ReplayCliTest, WhatADeviceGetsWrongIsNamed) {
  ASSERT_EQ(Capture("--capture-level ops --capture-values").code, 0);
  const Output replay = Trine("replay --ops " + path(), "TRINE_FAULT='cpu:garbage=huge@run=3'");
  EXPECT_EQ(replay.code, 1);
  EXPECT_THAT(replay.text, HasSubstr("different: pass 0 (from position 0), layer 0, op 2: "));
  EXPECT_THAT(replay.text, HasSubstr("first element 0: "));
  EXPECT_THAT(replay.text, HasSubstr("ulps apart"));
  ASSERT_EQ(Capture("").code, 0);
  const Output layer = Trine("replay " + path(), "TRINE_FAULT='cpu:garbage@run=3'");
  EXPECT_EQ(layer.code, 1);
  EXPECT_THAT(layer.text, HasSubstr("layer 1"));
  EXPECT_THAT(layer.text, HasSubstr("--capture-level ops"));
}

// Blocks of a prompt are not taken from a store, as the capture would lack them.
TEST_F(ReplayCliTest, ACaptureHasWhatAStoreKnows) {
  std::string prompt;
  for (int i = 0; i < 60; ++i) prompt += "the fox ran ";
  const std::string rest = " -n 2 --kv-store " + (folder_ / "kv").string();
  ASSERT_EQ(Trine("generate -p '" + prompt + "'" + rest).code, 0);
  ASSERT_EQ(Trine("generate -p '" + prompt + "'" + rest + " --capture " + path()).code, 0);
  const Output replay = Trine("replay " + path());
  EXPECT_EQ(replay.code, 0) << replay.errors;
  EXPECT_THAT(replay.text, HasSubstr("identical"));
}

TEST_F(ReplayCliTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(Trine("replay").code, 2);
  EXPECT_EQ(Trine("replay /nowhere").code, 1);
  EXPECT_THAT(Trine("replay /nowhere").errors, HasSubstr("/nowhere: there is no such file"));
  EXPECT_EQ(Trine("replay " TRINE_SHIPPED_MODEL).code, 1);
  EXPECT_THAT(Trine("replay " TRINE_SHIPPED_MODEL).errors, HasSubstr("is no capture"));
  EXPECT_EQ(Trine("generate -p x -n 1 --capture-values").code, 2);
  EXPECT_EQ(Trine("generate -p x -n 1 --parallel 2 --capture " + path()).code, 2);
  EXPECT_EQ(Trine("generate -p x -n 1 --capture /nowhere/at/all").code, 1);
  ASSERT_EQ(Capture("").code, 0);
  EXPECT_EQ(Trine("make-model --like tiny-gemma3 " + (folder_ / "m.gguf").string()).code, 0);
  const Output other = Trine("replay " + path() + " -m " + (folder_ / "m.gguf").string());
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.errors, HasSubstr("is another model"));
}

}  // namespace
}  // namespace trine
