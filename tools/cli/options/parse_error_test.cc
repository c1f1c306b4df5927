#include <algorithm>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/cli/options/arguments.h"
#include "tools/cli/options/command_line.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the message for the arguments; "" if nothing is wrong.
std::string Parse(std::vector<std::string> arguments) {
  CLI::App app("Does things.", "prog");
  Command run = Command(&app).AddCommand("run", "Run it");
  int count = 0, layers = 0;
  std::string name;
  bool flag = false;
  std::vector<std::string> words, list;
  run.AddOption("-n,--n-predict,--predict", count, "How many");
  run.AddOption("--gpu-layers", layers, "Where");
  run.AddOption("--name", name, "Its name");
  run.AddOption("--word", words, "A word; may be repeated");
  run.AddOption("--list", list, "Words, separated by commas").Delimiter(',');
  run.AddFlag("--json", flag, "A flag");
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return DescribeParseError(app, error);
  }
  return "";
}

TEST(ParseErrorTest, AnOptionThatIsRepeatedIsNamedAsItIsTyped) {
  EXPECT_EQ(Parse({"run", "-n", "1", "--predict", "2"}),
            "-n (--n-predict) is given twice: it takes one value");
  EXPECT_EQ(Parse({"run", "--gpu-layers", "1", "--gpu-layers", "2", "--gpu-layers=3"}),
            "-ngl (--gpu-layers) is given 3 times: it takes one value");
  EXPECT_EQ(Parse({"run", "--name", "a", "--name", "b"}),
            "--name is given twice: it takes one value");
}

TEST(ParseErrorTest, AMissingValueIsSaid) {
  EXPECT_EQ(Parse({"run", "--name"}), "--name needs a value");
  EXPECT_EQ(Parse({"run", "--list", ","}), "--list needs a value");
}

TEST(ParseErrorTest, AWordThatIsNoCommandIsNamed) {
  EXPECT_EQ(Parse({"rnu", "-n", "1"}), "there is no command 'rnu'");
  EXPECT_EQ(Parse({"--banana"}), "there is no option --banana");
  EXPECT_THAT(Parse({"run", "walk"}), HasSubstr("walk"));
}

TEST(ParseErrorTest, OtherErrorsStay) {
  EXPECT_EQ(Parse({"run", "--word", "a", "--word", "b", "--json", "--json", "-n", "3"}), "");
  EXPECT_THAT(Parse({"run", "-n"}), Not(HasSubstr("is given")));
  EXPECT_EQ(Parse({"run", "--banana"}), "run has no option --banana");
  EXPECT_EQ(Parse({"run", "-n", "x"}), "--n-predict: 'x' is no whole number");
}

}  // namespace
}  // namespace trine
