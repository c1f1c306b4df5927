#include "tools/cli/manual/man_page.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RoffTest, KeepsOptionsAndNumbersSearchable) {
  EXPECT_EQ(Roff("--top-k or -1"), "\\-\\-top\\-k or \\-1");
  EXPECT_EQ(Roff("(-c)"), "(\\-c)");
  EXPECT_EQ(Roff("well-known"), "well-known");
}

TEST(RoffTest, NothingInATextIsARequestOrAnEscape) {
  EXPECT_EQ(Roff(".so /etc/passwd"), "\\&.so /etc/passwd");
  EXPECT_EQ(Roff("'x"), "\\&'x");
  EXPECT_EQ(Roff("a\n.b"), "a\n\\&.b");
  EXPECT_EQ(Roff("a.b don't"), "a.b don't");
  EXPECT_EQ(Roff("a\\fBb"), "a\\efBb");
}

CommandInfo Check() {
  CommandInfo command;
  command.path = {"trine", "plugin", "check"};
  command.description = "Check it: every op";
  OptionInfo timeout;
  timeout.names = {"-t", "--timeout"};
  timeout.description = "Seconds";
  timeout.value = ValueKind::kText;
  timeout.value_name = "INT";
  timeout.range = "1 to 9";
  timeout.default_value = "5";
  timeout.excludes = {"--long"};
  OptionInfo mode;
  mode.names = {"--mode"};
  mode.description = "How it runs.";
  mode.value = ValueKind::kChoice;
  mode.value_name = "TEXT";
  mode.choices = {"on", "off"};
  mode.needs = {"--timeout"};
  OptionInfo path;
  path.names = {"PATH"};
  path.description = "The plugin";
  path.value = ValueKind::kFile;
  path.value_name = "PLUGIN";
  path.required = true;
  command.options = {timeout, mode};
  command.arguments = {path};
  return command;
}

TEST(ManPageTest, SaysEverythingAboutAnOption) {
  const std::string page = ManPage(Check(), "1.2.3");
  EXPECT_THAT(page, HasSubstr(".TH TRINE\\-PLUGIN\\-CHECK 1 \"\" \"trine 1.2.3\""));
  EXPECT_THAT(page, HasSubstr(".SH NAME\ntrine\\-plugin\\-check \\- Check it\n"));
  EXPECT_THAT(page, HasSubstr("\\fBtrine plugin check\\fR [\\fIOPTIONS\\fR] \\fIPATH\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SH OPTIONS\n.TP\n\\fB\\-t\\fR, \\fB\\-\\-timeout\\fR \\fIINT\\fR\n"
                              "Seconds. From 1 to 9. Default: 5. Not with \\-\\-long.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-\\-mode\\fR \\fITEXT\\fR\n"
                              "How it runs. One of on, off. Only with \\-\\-timeout.\n"));
  EXPECT_THAT(page, HasSubstr(".SH ARGUMENTS\n.TP\n\\fIPATH\\fR\nThe plugin. Required.\n"));
  EXPECT_THAT(page, HasSubstr(".SH SEE ALSO\n\\fBtrine\\fR(1),\n\\fBtrine\\-plugin\\fR(1)\n"));
  EXPECT_THAT(page, Not(HasSubstr(".SH COMMANDS")));
}

TEST(ManPageTest, ListsTheCommandsBelow) {
  CommandInfo plugin;
  plugin.path = {"trine", "plugin"};
  plugin.description = "Work with plugins";
  plugin.commands = {Check()};
  const std::string page = ManPage(plugin, "1");
  EXPECT_THAT(page, HasSubstr("\\fBtrine plugin check\\fR\nCheck it. See "
                              "\\fBtrine\\-plugin\\-check\\fR(1).\n"));
  EXPECT_EQ(ManPageName(plugin), "trine-plugin");
}

}  // namespace
}  // namespace trine
