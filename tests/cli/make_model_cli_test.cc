// Tests trine make-model from outside.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MakeModelCliTest : public CliFixture {
 protected:
  std::string Path(const std::string& name) { return (folder_ / name).string(); }
  // Expects one clear line, the exit code of a failure, and no file.
  void ExpectRefused(const std::string& arguments, const std::string& part, int code) {
    const Output output = Trine("make-model " + arguments + " " + Path("refused.gguf"));
    EXPECT_EQ(output.code, code) << arguments << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_THAT(output.errors, StartsWith("trine: ")) << arguments;
    EXPECT_EQ(std::count(output.errors.begin(), output.errors.end(), '\n'), 1) << output.errors;
    EXPECT_EQ(output.text, "") << arguments;
    EXPECT_FALSE(fs::exists(Path("refused.gguf"))) << arguments;
  }
};

TEST_F(MakeModelCliTest, WhatItMakesRuns) {
  const std::string model = Path("model.gguf");
  const Output made = Trine("make-model --like tales-27m --layers 2 --type q4_k_m " + model);
  EXPECT_EQ(made.code, 0) << made.errors;
  EXPECT_EQ(made.errors, "");
  EXPECT_THAT(made.text, HasSubstr("tales-27m, 3.67M parameters"));
  EXPECT_THAT(Trine("show model -m " + model).text, HasSubstr("Q4_K_M"));
  const Output told = Trine("generate -m " + model + " -p 'Once upon a time' -n 8 --temp 0");
  EXPECT_EQ(told.code, 0) << told.errors;
  EXPECT_THAT(told.text, StartsWith("Once upon a time"));
}

TEST_F(MakeModelCliTest, TheSameBytesWhateverTheThreads) {
  const std::string like = "make-model --like tiny-qwen3 ";
  ASSERT_EQ(Trine(like + "-t 1 " + Path("a")).code, 0);
  ASSERT_EQ(Trine(like + "-t 4 --seed 1 " + Path("b")).code, 0);
  ASSERT_EQ(Trine(like + "--seed 2 " + Path("c")).code, 0);
  EXPECT_EQ(Shell("cmp " + Path("a") + " " + Path("b")).code, 0);
  EXPECT_EQ(Shell("cmp " + Path("a") + " " + Path("c")).code, 1);
}

TEST_F(MakeModelCliTest, SplitsListsAndRehearses) {
  const Output split =
      Trine("make-model --like tiny-olmo2 --ctx 64 --split-max-size 1M --vocab 900 " +
            Path("split.gguf"));
  EXPECT_EQ(split.code, 0) << split.errors;
  EXPECT_TRUE(fs::exists(Path("split-00001-of-00002.gguf")));
  EXPECT_THAT(Trine("show model -m " + Path("split-00001-of-00002.gguf")).text, HasSubstr("olmo2"));

  const Output list = Trine("make-model --list");
  EXPECT_EQ(list.code, 0) << list.errors;
  EXPECT_THAT(list.text, HasSubstr("llama-3.1-8b"));
  EXPECT_THAT(list.text, HasSubstr("tiny-gpt-oss"));

  const Output rehearsed = Trine("make-model --like llama-3.1-8b --type q4_k_m --dry-run");
  EXPECT_EQ(rehearsed.code, 0) << rehearsed.errors;
  EXPECT_THAT(rehearsed.text, HasSubstr("8.03B parameters, 4.6 GiB"));
}

TEST_F(MakeModelCliTest, WhateverEndsItLeavesNothing) {
  for (const char* signal : {"TERM", "HUP"}) {
    const Output output = SignalWhileWriting(
        signal, "make-model --like llama-3.2-1b -t 1 " + Path("cut.gguf"), Path("cut.gguf"));
    EXPECT_EQ(output.code, 130) << signal << output.errors;
    EXPECT_FALSE(fs::exists(Path("cut.gguf"))) << signal;
    EXPECT_EQ(Leftovers(), 0) << signal;
  }
}

TEST_F(MakeModelCliTest, ALimitOnFileSizesLeavesNothing) {
  const Output output = Shell("ulimit -f 100; '" TRINE_PROGRAM "' make-model --like tiny-qwen3 " +
                              Path("large.gguf"));
  EXPECT_EQ(output.code, 1) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("File too large"));
  EXPECT_EQ(Leftovers(), 0);
}

TEST_F(MakeModelCliTest, KnowsModelsByTheirFamily) {
  EXPECT_THAT(Trine("make-model --like qwen3-moe --dry-run").text,
              HasSubstr("qwen3-30b-a3b, 30.53B parameters"));
  EXPECT_THAT(Trine("make-model --like qwen2-moe --dry-run").text,
              HasSubstr("qwen1.5-moe-a2.7b, 14.32B parameters"));
  const Output list = Trine("make-model --list");
  EXPECT_THAT(list.text, ContainsRegex("qwen3-30b-a3b +qwen3moe .*qwen3-moe\n"));
  EXPECT_THAT(list.text, ContainsRegex("qwen1.5-moe-a2.7b +qwen2moe .*qwen2-moe\n"));
}

TEST_F(MakeModelCliTest, RefusesInOneLine) {
  ExpectRefused("--like llama-9", "there is no model 'llama-9' to make", 2);
  ExpectRefused("", "needs --like", 2);
  ExpectRefused("--like tiny-qwen3 --type q9", "no type is called 'q9'", 2);
  ExpectRefused("--like tiny-qwen3 --type copy", "no type a new model can have", 2);
  ExpectRefused("--like tiny-qwen3 --pure", "--type", 2);
  ExpectRefused("--like tiny-qwen3 --layers 0", "--layers", 2);
  ExpectRefused("--like tiny-qwen3 --layers 100000",
                "--layers: '100000' is no whole number from 1 to 512", 2);
  ExpectRefused("--like tiny-qwen3 --vocab 5", "the vocabulary is 5", 2);
  ExpectRefused("--like tiny-qwen3 --split-max-size 5", "expected 500M or 2G", 2);
  ExpectRefused("--like tiny-qwen3 --split-max-size 99999999999999999G", "is no size", 2);
  ExpectRefused("--like tiny-qwen3 --threads 0", "--threads", 2);
  const Output nowhere = Trine("make-model --like tiny-qwen3 /no/such/folder/x.gguf");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.errors, HasSubstr("/no/such/folder/x.gguf: cannot be created"));
}

}  // namespace
}  // namespace trine
