#include "tools/cli/options/values.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/cli/options/arguments.h"
#include "tools/cli/options/command_line.h"

namespace trine {
namespace {

// The variables of a command that has an option of each kind.
struct Values {
  int threads = 0;
  int64_t seed = 0;
  uint64_t number = 0, bytes = 0;
  double temp = 0;
  float share = 0;
  std::optional<int64_t> hot;
  std::string type, folder, name;
  bool json = false;
  int64_t layers = 0;
  std::vector<std::string> words;
};

// Returns the message for the arguments of the command; "" if nothing is wrong.
std::string Parse(std::vector<std::string> arguments, Values* v) {
  CLI::App app("Does things.", "prog");
  Command run = Command(&app).AddCommand("run", "Run it");
  run.AddOption("-t,--threads", v->threads, "How many").Range(0, 1024);
  run.AddOption("--seed", v->seed, "Any");
  run.AddOption("--number", v->number, "Any from 0 on");
  run.AddOption("--kv-host", v->bytes, "Bytes").AsSize();
  run.AddOption("--temp", v->temp, "How warm").Range(0.0, 2.5);
  run.AddOption("--share", v->share, "Any");
  run.AddOption("--hot-experts", v->hot, "How many").Range(int64_t{0}, int64_t{1} << 20);
  run.AddOption("--type", v->type, "Which").OneOf({"f16", "q8_0"});
  run.AddOption("--folder", v->folder, "Where").ExistingFolder();
  run.AddFlag("--json", v->json, "A flag");
  run.AddFlagTo("--cpu-moe", v->layers, -1, "A flag that sets a number");
  run.AddOption("--name", v->name, "Its name").Excludes({"--json"}).Needs("--seed");
  run.AddOption("--word", v->words, "A word; may be repeated").OneValueEach();
  app.require_subcommand(0, 1);
  arguments.insert(arguments.begin(), "run");
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return DescribeParseError(app, error);
  }
  return "";
}

std::string Parse(std::vector<std::string> arguments) {
  Values values;
  return Parse(std::move(arguments), &values);
}

constexpr char kHuge[] = "99999999999999999999";

TEST(ValuesTest, AWrongValueIsNamedWithWhatIsAllowed) {
  const std::string bytes = "number of bytes, such as 4096, 512M or 16G";
  const std::string layers = " whole number from 0 to 1048576";
  struct Case {
    std::string argument, message;
  };
  const std::vector<Case> cases = {
      {"--threads=x", "--threads: 'x' is no whole number from 0 to 1024"},
      {"-tx", "--threads: 'x' is no whole number from 0 to 1024"},
      {"--threads=", "--threads: it is empty: expected a whole number from 0 to 1024"},
      {"--threads=-1", "--threads: '-1' is no whole number from 0 to 1024"},
      {"--threads=1.5", "--threads: '1.5' is no whole number from 0 to 1024"},
      {"--threads=1025", "--threads: '1025' is no whole number from 0 to 1024"},
      {std::string("--threads=") + kHuge,
       std::string("--threads: '") + kHuge + "' is no whole number from 0 to 1024"},
      {"--hot-experts=abc", "--hot-experts: 'abc' is no" + layers},
      {"--hot-experts=", "--hot-experts: it is empty: expected a" + layers},
      {"--hot-experts=-3", "--hot-experts: '-3' is no" + layers},
      {"--seed=x", "--seed: 'x' is no whole number"},
      {"--seed=", "--seed: it is empty: expected a whole number"},
      {std::string("--seed=") + kHuge, std::string("--seed: '") + kHuge + "' is too large"},
      {"--number=-1", "--number: '-1' is no whole number from 0 on"},
      {"--temp=hot", "--temp: 'hot' is no number from 0 to 2.5"},
      {"--temp=nan", "--temp: 'nan' is no number from 0 to 2.5"},
      {"--temp=1e999", "--temp: '1e999' is no number from 0 to 2.5"},
      {"--share=x", "--share: 'x' is no number"},
      {"--share=nan", "--share: 'nan' is no number"},
      {"--kv-host=abc", "--kv-host: 'abc' is no " + bytes},
      {"--kv-host=", "--kv-host: it is empty: expected a " + bytes},
      {"--kv-host=G", "--kv-host: 'G' is no " + bytes},
      {"--kv-host=1.5G", "--kv-host: '1.5G' is no " + bytes},
      {"--kv-host=5 parsecs", "--kv-host: '5 parsecs' is no " + bytes},
      {"--kv-host=-1G", "--kv-host: '-1G' is below 0: expected a " + bytes},
      {std::string("--kv-host=") + kHuge, std::string("--kv-host: '") + kHuge + "' is too large"},
      {"--kv-host=99999999999G", "--kv-host: '99999999999G' is too large"},
      {"--type=q2", "--type: 'q2' is none of f16, q8_0"},
      {"--type=", "--type: it is empty: expected one of f16, q8_0"},
      {"--folder=/nonexistent", "--folder: '/nonexistent' is no folder that is there"},
      {"--folder=", "--folder: it is empty: expected a folder that is there"},
      {"--json=maybe", "--json: 'maybe' is neither true nor false; without a value it is true"},
      {"--cpu-moe=maybe",
       "--cpu-moe: 'maybe' is neither true nor false; without a value it is true"},
      {"--threads", "--threads needs a value"},
      {"--name=x", "--name needs --seed beside it"},
      {"--banana", "run has no option --banana"},
      {"--banana=5", "run has no option --banana"},
      {"walk", "run has no use for 'walk'"},
  };
  for (const Case& c : cases) {
    // The parser takes nothing behind the '=' for no value, and an argument of its own for an empty
    // one.
    std::vector<std::string> arguments = {c.argument};
    if (c.argument.back() == '=') arguments = {c.argument.substr(0, c.argument.size() - 1), ""};
    EXPECT_EQ(Parse(arguments), c.message) << c.argument;
  }
  EXPECT_EQ(Parse({"--threads="}), "--threads needs a value");
  EXPECT_EQ(Parse({"--name", "x", "--json", "--seed", "1"}), "--json does not go with --name");
  EXPECT_EQ(Parse({"--threads", "1", "-t", "2"}),
            "-t (--threads) is given twice: it takes one value");
  EXPECT_EQ(Parse({"--hot-experts", "1", "--hot-experts", "2"}),
            "--hot-experts is given twice: it takes one value");
}

TEST(ValuesTest, RightValuesAreRead) {
  Values v;
  EXPECT_EQ(Parse({"-t",        "1024",     "--seed",  "-7",   "--number",      "0",
                   "--kv-host", "2G",       "--temp",  "2.5",  "--hot-experts", "0",
                   "--type",    "q8_0",     "--share", "1e-3", "--folder",      "/",
                   "--json",    "--cpu-moe"},
                  &v),
            "");
  EXPECT_EQ(v.threads, 1024);
  EXPECT_EQ(v.seed, -7);
  EXPECT_EQ(v.bytes, uint64_t{2} << 30);
  EXPECT_EQ(v.temp, 2.5);
  EXPECT_EQ(v.hot, 0);
  EXPECT_EQ(v.type, "q8_0");
  EXPECT_TRUE(v.json);
  EXPECT_EQ(v.layers, -1);
  EXPECT_EQ(Parse({"--kv-host", "0"}, &v), "");
  EXPECT_EQ(v.bytes, 0u);
  EXPECT_EQ(Parse({"--kv-host", "100 MB", "--json=false"}, &v), "");
  EXPECT_EQ(v.bytes, uint64_t{100} << 20);
  EXPECT_FALSE(v.json);
}

}  // namespace
}  // namespace trine
