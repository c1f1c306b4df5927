// Tests trine quantize from outside, with the shipped model.
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class QuantizeCliTest : public CliFixture {
 protected:
  std::string Out() const { return (folder_ / "out.gguf").string(); }
  Output Quantize(const std::string& arguments) { return Trine("quantize " + arguments); }

  // Expects one clear line, and no file.
  void ExpectRefused(const std::string& arguments, const std::string& part) {
    const Output output = Quantize(arguments);
    EXPECT_GT(output.code, 0) << arguments;
    EXPECT_THAT(output.errors, StartsWith("trine: ")) << arguments;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_EQ(std::count(output.errors.begin(), output.errors.end(), '\n'), 1) << output.errors;
    EXPECT_FALSE(fs::exists(Out())) << arguments;
  }
  const std::string model_ = TRINE_SHIPPED_MODEL;
};

TEST_F(QuantizeCliTest, MakesASmallerFileThatRuns) {
  const Output output = Quantize("--allow-requantize " + model_ + " " + Out() + " q4_0 2");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_EQ(output.errors, "");
  EXPECT_THAT(output.text, HasSubstr("4.69 bits per weight (Q4_0)"));
  EXPECT_THAT(output.text, HasSubstr("ns per weight"));
  EXPECT_LT(fs::file_size(Out()) * 17, fs::file_size(model_) * 10);
  EXPECT_THAT(Trine("show model " + Out()).text, HasSubstr("Q4_0, 27.3 M parameters"));
  const Output story = Trine("generate -m " + Out() + " -p 'Once upon a time' -n 8 --temp 0");
  EXPECT_EQ(story.code, 0) << story.errors;
  EXPECT_THAT(story.text, StartsWith("Once upon a time"));
  EXPECT_EQ(Leftovers(), 0);
}

TEST_F(QuantizeCliTest, ACopyHasTheSameTensors) {
  EXPECT_EQ(Quantize(model_ + " " + Out() + " COPY").code, 0);
  EXPECT_EQ(fs::file_size(Out()), fs::file_size(model_));
  EXPECT_EQ(Shell("cmp " + model_ + " " + Out()).code, 0);
}

TEST_F(QuantizeCliTest, ADryRunWritesNothing) {
  const Output output = Quantize("--dry-run --allow-requantize -v " + model_ + " Q2_K");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, HasSubstr("would be a new file: "));
  EXPECT_THAT(output.text, HasSubstr("blk.0.ffn_down.weight"));
  EXPECT_EQ(Quantize("--dry-run --allow-requantize " + model_ + " " + Out() + " Q2_K").code, 0);
  EXPECT_EQ(Quantize("--dry-run --allow-requantize " + model_ + " Q2_K 2").code, 0);
  EXPECT_FALSE(fs::exists(Out()));
}

TEST_F(QuantizeCliTest, TypesOfSingleTensors) {
  const Output output = Quantize(
      "--dry-run --allow-requantize -v --tensor-type 'blk\\.[01]\\.attn_q=q5_1' --tensor-type "
      "ffn_up=f16 --output-tensor-type q5_0 " +
      model_ + " Q4_0");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_EQ(Shell("printf '%s' '" + output.text + "' | grep -c 'attn_q.weight.*Q5_1'").text, "2\n");
  EXPECT_THAT(output.text, HasSubstr("F16"));
}

TEST_F(QuantizeCliTest, SaysWhatIsWrong) {
  ExpectRefused(model_ + " " + Out() + " Q4_K_M", "--allow-requantize");
  ExpectRefused(model_ + " " + Out() + " Q9", "no type is called 'Q9'");
  ExpectRefused(model_ + " " + Out(), "IN OUT TYPE");
  ExpectRefused(model_ + " " + Out() + " Q8_0 0", "0 threads");
  ExpectRefused("/nowhere.gguf " + Out() + " Q8_0", "/nowhere.gguf");
  ExpectRefused("--imatrix /nowhere " + model_ + " " + Out() + " Q8_0", "/nowhere");
  ExpectRefused("--tensor-type attn_q " + model_ + " " + Out() + " Q8_0", "EXPRESSION=TYPE");
  ExpectRefused("--tensor-type 'a(=q8_0' " + model_ + " " + Out() + " Q8_0", "is wrong at offset");
  ExpectRefused("--tensor-type zzz=q8_0 " + model_ + " " + Out() + " Q8_0", "matches no tensor");
  ExpectRefused("--imatrix " + model_ + " " + model_ + " " + Out() + " Q8_0", "no importance");
  ExpectRefused(model_ + " " + (folder_ / "no" / "folder.gguf").string() + " Q8_0", "no/folder");
}

TEST_F(QuantizeCliTest, TheFileThatIsReadIsNotReplaced) {
  const std::string copy = (folder_ / "in.gguf").string();
  fs::copy_file(model_, copy);
  ExpectRefused(copy + " " + copy + " COPY", "is the file that is read");
  EXPECT_EQ(fs::file_size(copy), fs::file_size(model_));
}

TEST_F(QuantizeCliTest, AFullDiskLeavesNothing) {
  const Output output =
      Shell("ulimit -f 1000; '" TRINE_PROGRAM "' quantize " + model_ + " " + Out() + " COPY");
  EXPECT_EQ(output.code, 1) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("cannot be written: File too large"));
  EXPECT_FALSE(fs::exists(Out()));
  EXPECT_EQ(Leftovers(), 0);
}

TEST_F(QuantizeCliTest, AnInterruptLeavesNothing) {
  const Output output = SignalWhileWriting(
      "TERM", "quantize --allow-requantize -t 1 " + model_ + " " + Out() + " Q2_K", Out());
  EXPECT_EQ(output.code, 130) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("cancelled"));
  EXPECT_FALSE(fs::exists(Out()));
  EXPECT_EQ(Leftovers(), 0);
}

TEST_F(QuantizeCliTest, UnderNohupAHangUpMeansNothing) {
  struct sigaction ignored {
  }, before{};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignored, &before);  // the program inherits it
  const Output output = SignalWhileWriting(
      "HUP", "quantize --allow-requantize -t 1 " + model_ + " " + Out() + " Q2_K", Out());
  sigaction(SIGHUP, &before, nullptr);
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_TRUE(fs::exists(Out()));
}

}  // namespace
}  // namespace trine
