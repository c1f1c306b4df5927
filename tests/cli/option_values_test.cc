// Gives every option of every command wrong values, and looks at what is said then.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/cli/commands/all_commands.h"
#include "tools/cli/options/command_line.h"
#include "tools/cli/options/describe_commands.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHuge[] = "99999999999999999999";

// Words of the parser, and of programmers, that no message should have.
constexpr const char* kForbidden[] = {
    "Could not",  "convert",  "not in range", "Value ", "not in {", " excludes ",
    " requires ", "required", "TEXT",         "INT",    "FLOAT",    "The following argument",
    "Failed",     "factor",   "exception",    "stoi",   "overflow",
};

class OptionValuesTest : public ::testing::Test {
 protected:
  // A command and what adds it to a parser. The parser of one command takes far less time than that
  // of all.
  struct Subject {
    AddCommand add;
    CommandInfo command;
  };

  template <class Use>
  static auto WithLine(AddCommand add, Use use) {
    CommandLine line("trine", "Runs models.", "1");
    trine::Run run;
    add(line.root(), &run);
    return use(line);
  }
  static std::vector<Subject> Subjects() {
    std::vector<Subject> subjects;
    for (const AddCommand add : kAllCommands) {
      const CommandInfo root =
          WithLine(add, [](CommandLine& line) { return DescribeCommands(line.root()); });
      for (const CommandInfo& first : root.commands) {
        for (const CommandInfo* command : AllCommands(first)) subjects.push_back({add, *command});
      }
    }
    return subjects;
  }

  // Expects that the arguments are refused, and returns the sentence.
  static std::string Refusal(const Subject& subject, const std::vector<std::string>& arguments) {
    std::vector<std::string> words = subject.command.path;
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStderr();
    const auto code = WithLine(subject.add, [&](CommandLine& line) {
      return line.Parse(static_cast<int>(argv.size()), argv.data());
    });
    std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(code.value_or(0), 2);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_TRUE(absl::StartsWith(said, "trine: ")) << said;
    EXPECT_TRUE(absl::EndsWith(said, " (see --help)\n")) << said;
    for (const char* word : kForbidden) EXPECT_THAT(said, Not(HasSubstr(word)));
    return said;
  }

  // Calls `check` with each option that has a name of two dashes.
  template <class Check>
  static void ForEachOption(Check check) {
    size_t options = 0;
    for (const Subject& subject : Subjects()) {
      for (const OptionInfo& option : subject.command.options) {
        const std::string& name = option.names.back();
        if (!absl::StartsWith(name, "--") || name == "--help" || name == "--version") continue;
        SCOPED_TRACE(absl::StrCat(absl::StrJoin(subject.command.path, " "), " ", name));
        check(subject, option, LongName(option));
        ++options;
      }
    }
    EXPECT_GT(options, 200u);
  }

  // Returns the name that the parser calls an option by: the first one with two dashes.
  static std::string LongName(const OptionInfo& option) {
    return *std::find_if(option.names.begin(), option.names.end(),
                         [](const std::string& name) { return absl::StartsWith(name, "--"); });
  }
};

TEST_F(OptionValuesTest, NumbersSayTheirRange) {
  size_t checked = 0;
  ForEachOption([&](const Subject& command, const OptionInfo& option, const std::string& name) {
    if (option.range.empty()) return;
    ++checked;
    for (const std::string value : {"abc", "-99999999999", kHuge, "nan", "0x", "1,5"}) {
      const std::string said = Refusal(command, {absl::StrCat(name, "=", value)});
      EXPECT_THAT(said, HasSubstr(absl::StrCat("trine: ", name, ": '", value, "' is no ")));
      EXPECT_THAT(said, HasSubstr(absl::StrCat("number from ", option.range)));
    }
    const std::string empty = Refusal(command, {name, ""});
    EXPECT_THAT(empty, HasSubstr(absl::StrCat(name, ": it is empty: expected a ")));
    EXPECT_THAT(empty, HasSubstr(absl::StrCat("number from ", option.range)));
  });
  EXPECT_GT(checked, 50u);
}

TEST_F(OptionValuesTest, WordsSayWhatThereIs) {
  size_t checked = 0;
  ForEachOption([&](const Subject& command, const OptionInfo& option, const std::string& name) {
    if (option.choices.empty()) return;
    ++checked;
    const std::string list = absl::StrJoin(option.choices, ", ");
    EXPECT_THAT(Refusal(command, {name + "=abc"}),
                HasSubstr(absl::StrCat("trine: ", name, ": 'abc' is none of ", list)));
    EXPECT_THAT(Refusal(command, {name, ""}),
                HasSubstr(absl::StrCat(name, ": it is empty: expected one of ", list)));
  });
  EXPECT_GT(checked, 20u);
}

TEST_F(OptionValuesTest, FlagsTakeNoOtherValue) {
  size_t checked = 0;
  ForEachOption([&](const Subject& command, const OptionInfo& option, const std::string& name) {
    if (option.value != ValueKind::kNone || name == "--pack-cache") return;  // which takes a folder
    ++checked;
    EXPECT_THAT(Refusal(command, {name + "=maybe"}),
                HasSubstr(absl::StrCat("trine: ", name, ": 'maybe' is neither true nor false")));
  });
  EXPECT_GT(checked, 50u);
}

TEST_F(OptionValuesTest, AValueThatIsMissingOrGivenTwiceIsSaid) {
  ForEachOption([&](const Subject& command, const OptionInfo& option, const std::string& name) {
    if (option.value == ValueKind::kNone) return;
    EXPECT_THAT(Refusal(command, {name}),
                HasSubstr(absl::StrCat("trine: ", name, " needs a value")));
    if (option.repeated || (option.range.empty() && option.choices.empty())) return;
    const std::string value =
        option.range.empty() ? option.choices[0] : option.range.substr(0, option.range.find(' '));
    const std::string argument = absl::StrCat(name, "=", value);
    const std::string said = Refusal(command, {argument, argument});
    EXPECT_THAT(said, HasSubstr(name));
    EXPECT_THAT(said, HasSubstr("is given twice: it takes one value"));
  });
}

TEST_F(OptionValuesTest, SizesAndOtherValuesAreExplained) {
  struct Case {
    std::vector<std::string> command, arguments;
    std::string said;
  };
  const std::vector<Case> cases = {
      {{"generate"},
       {"--hot-experts", "abc"},
       "--hot-experts: 'abc' is no whole number from 0 to 1048576"},
      {{"generate"},
       {"--n-cpu-moe", "-3"},
       "--n-cpu-moe: '-3' is no whole number from 0 to 1048576"},
      {{"generate"}, {"--cpu-moe=maybe"}, "--cpu-moe: 'maybe' is neither true nor false"},
      {{"generate"}, {"--cpu-moe", "--n-cpu-moe", "3"}, " does not go with "},
      {{"generate"}, {"--kv-host", "much"}, "--kv-host: 'much' is no number of bytes, such as"},
      {{"generate"}, {"--keep", "3"}, "--keep needs --context-shift beside it"},
      {{"generate"}, {"--dispatch", "sometimes"}, "--dispatch: "},
      {{"generate"}, {"--tensor-split", "cpu"}, "--tensor-split: "},
      {{"generate"}, {"--device-memory", "dgpu"}, "--device-memory: "},
      {{"generate"}, {"--override-tensor", "x"}, "--override-tensor: "},
      {{"generate"}, {"--plugin-option", "x"}, "--plugin-option: "},
      {{"generate"}, {"--seed", kHuge}, "--seed: "},
      {{"generate"}, {"--banana"}, "trine: generate has no option --banana"},
      {{"generate"}, {"hello"}, "trine: generate has no use for 'hello'"},
      {{"serve"}, {"--port", "http"}, "--port: 'http' is no whole number from 0 to 65535"},
      {{"plugin"}, {}, "trine: plugin needs one of its commands: check"},
      {{"quantize"}, {}, "trine: quantize needs IN"},
  };
  const std::vector<Subject> subjects = Subjects();
  for (const Case& c : cases) {
    const auto named = [&](const Subject& subject) {
      return std::equal(subject.command.path.begin() + 1, subject.command.path.end(),
                        c.command.begin(), c.command.end());
    };
    const auto subject = std::find_if(subjects.begin(), subjects.end(), named);
    ASSERT_NE(subject, subjects.end());
    EXPECT_THAT(Refusal(*subject, c.arguments), HasSubstr(c.said));
  }
}

}  // namespace
}  // namespace trine
