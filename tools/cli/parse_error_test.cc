#include "tools/cli/parse_error.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What is said about the arguments; "" where nothing is wrong.
std::string Parse(std::vector<std::string> arguments) {
  CLI::App app("Does things.", "prog");
  CLI::App* run = app.add_subcommand("run", "Run it");
  int count = 0, layers = 0;
  std::string name;
  bool flag = false;
  std::vector<std::string> words;
  run->add_option("-n,--n-predict,--predict", count, "How many");
  run->add_option("--gpu-layers", layers, "Where");
  run->add_option_group("More", "More of them")->add_option("--name", name, "Its name");
  run->add_option("--word", words, "A word; may be repeated");
  run->add_flag("--json", flag, "A flag");
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

TEST(ParseErrorTest, OtherErrorsStay) {
  EXPECT_EQ(Parse({"run", "--word", "a", "--word", "b", "--json", "--json", "-n", "3"}), "");
  EXPECT_THAT(Parse({"run", "-n"}), Not(HasSubstr("is given")));
  EXPECT_THAT(Parse({"run", "--banana"}), HasSubstr("--banana"));
  EXPECT_THAT(Parse({"run", "-n", "x"}), HasSubstr("x"));
}

}  // namespace
}  // namespace trine
