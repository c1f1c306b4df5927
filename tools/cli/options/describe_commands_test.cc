#include "tools/cli/options/describe_commands.h"

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/cli/manual/option_tree.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A program with one option of each kind.
class DescribeCommandsTest : public ::testing::Test {
 protected:
  DescribeCommandsTest() : app_("Does things.", "prog") {
    Command root(&app_);
    Command run = root.AddCommand("run", "Run it: quickly");
    run.AddOption("-m,--model", model_, "The model");
    run.AddOption("--ubatch-size", count_, "How many").Range(1, 64).ShowDefault();
    run.AddOption("--mode", mode_, "How").OneOf({"fast", "slow"});
    run.AddOption("--root", root_, "Where").ExistingFolder();
    run.AddOption("--word", words_, "A word").ShowDefault();
    run.AddFlag("-v,--verbose", verbose_, "Say more");
    run.AddOption("--token", mode_, "A token").Excludes({"--word", "--mode"}).Needs("--model");
    run.AddOption("OUTPUT", output_, "Where to write").Required();
    root.AddCommand("plugin", "Plugins").AddCommand("check", "Check one");
    NameValues(&app_);
    root_info_ = DescribeCommands(root);
  }

  OptionInfo Option(const std::string& name) const {
    for (const OptionInfo& option : root_info_.commands[0].options) {
      for (const std::string& other : option.names) {
        if (other == name) return option;
      }
    }
    ADD_FAILURE() << "there is no " << name;
    return {};
  }

  CLI::App app_;
  std::string model_, mode_, root_, output_;
  std::vector<std::string> words_;
  int count_ = 8;
  bool verbose_ = false;
  CommandInfo root_info_;
};

TEST_F(DescribeCommandsTest, FindsEveryCommand) {
  std::vector<std::string> paths;
  for (const CommandInfo* command : AllCommands(root_info_)) {
    std::string path;
    for (const std::string& word : command->path) path += "/" + word;
    paths.push_back(path);
  }
  EXPECT_THAT(paths, ElementsAre("/prog", "/prog/run", "/prog/plugin", "/prog/plugin/check"));
  EXPECT_EQ(FindCommand(root_info_, {}), &root_info_);
  ASSERT_NE(FindCommand(root_info_, {"plugin", "check"}), nullptr);
  EXPECT_EQ(FindCommand(root_info_, {"plugin", "check"})->description, "Check one");
  EXPECT_EQ(FindCommand(root_info_, {"check"}), nullptr);
}

TEST_F(DescribeCommandsTest, ListsOptionsInOrder) {
  std::vector<std::string> names;
  for (const OptionInfo& option : root_info_.commands[0].options) {
    names.push_back(option.names.back());
  }
  EXPECT_THAT(names, ElementsAre("--help", "--model", "--ubatch-size", "--mode", "--root", "--word",
                                 "--verbose", "--token"));
}

TEST_F(DescribeCommandsTest, NamesAndTypedForms) {
  EXPECT_THAT(Option("-m").names, ElementsAre("-m", "--model"));
  EXPECT_THAT(Option("-m").typed_forms, IsEmpty());
  EXPECT_THAT(Option("--ubatch-size").typed_forms, ElementsAre("-ub"));
}

TEST_F(DescribeCommandsTest, ValuesOfEveryKind) {
  EXPECT_EQ(Option("--model").value, ValueKind::kFile);
  EXPECT_EQ(Option("--model").value_name, "GGUF");
  EXPECT_EQ(Option("--model").suffix, ".gguf");
  EXPECT_EQ(Option("--mode").value, ValueKind::kChoice);
  EXPECT_THAT(Option("--mode").choices, ElementsAre("fast", "slow"));
  EXPECT_EQ(Option("--root").value, ValueKind::kFolder);
  EXPECT_EQ(Option("--word").value, ValueKind::kText);
  EXPECT_EQ(Option("--verbose").value, ValueKind::kNone);
  EXPECT_EQ(Option("--help").value, ValueKind::kNone);
  EXPECT_EQ(Option("--ubatch-size").value, ValueKind::kText);
  EXPECT_EQ(Option("--ubatch-size").value_name, "INT");
}

TEST_F(DescribeCommandsTest, RangesDefaultsAndRelations) {
  EXPECT_EQ(Option("--ubatch-size").range, "1 to 64");
  EXPECT_EQ(Option("--ubatch-size").default_value, "8");
  EXPECT_EQ(Option("--model").range, "");
  EXPECT_EQ(Option("--word").default_value, "");
  EXPECT_TRUE(Option("--word").repeated);
  EXPECT_FALSE(Option("--model").repeated);
  EXPECT_THAT(Option("--token").excludes, ElementsAre("--mode", "--word"));
  EXPECT_THAT(Option("--token").needs, ElementsAre("--model"));
}

TEST_F(DescribeCommandsTest, ArgumentsWithoutADash) {
  const std::vector<OptionInfo>& arguments = root_info_.commands[0].arguments;
  ASSERT_EQ(arguments.size(), 1u);
  EXPECT_THAT(arguments[0].names, ElementsAre("OUTPUT"));
  EXPECT_TRUE(arguments[0].required);
  EXPECT_EQ(arguments[0].value, ValueKind::kFile);
}

TEST(SummaryTest, EndsAtTheFirstStop) {
  EXPECT_EQ(Summary("Run it: quickly"), "Run it");
  EXPECT_EQ(Summary("Run it. Then stop"), "Run it");
  EXPECT_EQ(Summary("Runs it."), "Runs it");
  EXPECT_EQ(Summary("Run a.b; then c: d"), "Run a.b");
  EXPECT_EQ(Summary(""), "");
}

}  // namespace
}  // namespace trine
