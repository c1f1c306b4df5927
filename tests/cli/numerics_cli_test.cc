// Tests --numerics and --plugin-option from outside, with a device that has products alone and says
// that its results are fast.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kOnlyFast[] = "fast numerics only: not used without --numerics fast";
constexpr char kPlugin[] = " --plugin '" TRINE_PRODUCTS_PLUGIN "' ";

class NumericsCliTest : public CliFixture {
 protected:
  // Runs a command without the user's own calibration. A server that listens is stopped.
  Output Run(const std::string& arguments) {
    return Shell("TRINE_CALIBRATION=off timeout 100 '" TRINE_PROGRAM "' " + arguments);
  }
  Output Generate(const std::string& arguments) {
    return Run("generate -p 'Once upon a time' -n 4 --temp 0 -t 1 --logits-hash" +
               std::string(kPlugin) + arguments);
  }
  // Expects a failure with this exit code, one line on stderr, and nothing on stdout.
  void ExpectRefused(const std::string& arguments, int code, const std::string& part) {
    const Output output = Run(arguments);
    EXPECT_EQ(output.code, code) << arguments << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_EQ(std::count(output.errors.begin(), output.errors.end(), '\n'), 1) << output.errors;
    EXPECT_EQ(output.text, "") << arguments;
  }
};

// The commands that have plugins, with the arguments that each needs.
std::vector<std::string> Commands() {
  return {"generate -p x -n 1", "bench -p 4 -n 0 -r 1", "detect", "plan",
          "serve --port 0",     "embed -p x",           "chat",   "calibrate --dry-run"};
}

TEST_F(NumericsCliTest, FastIsUsedAndMarkedWhereItIsAsked) {
  const Output exact = Generate("--dispatch 2"), fast = Generate("--dispatch 2 --numerics fast");
  EXPECT_EQ(exact.code, 0) << exact.errors;
  EXPECT_EQ(exact.errors, "");
  EXPECT_THAT(exact.text, HasSubstr("logits hash: 1-"));
  EXPECT_EQ(fast.code, 0) << fast.errors;
  EXPECT_EQ(fast.errors, "Tri-Tier: CPU(32L, fast, prompts with products0)\n");
  EXPECT_THAT(fast.text, HasSubstr("logits hash: fast-"));
  EXPECT_EQ(Generate("--dispatch 2 --numerics exact").text, exact.text);
  const Output unused = Generate("--dispatch off --numerics fast");
  EXPECT_EQ(unused.errors, "") << "no device helps, so everything is on the CPU";
}

TEST_F(NumericsCliTest, MatricesByNameAreMarkedToo) {
  const Output named = Generate("-dev cpu -ot ffn_up=products0 --numerics fast");
  EXPECT_EQ(named.code, 0) << named.errors;
  EXPECT_EQ(named.errors, "Tri-Tier: CPU(32L, fast, matrices on products0)\n");
  const Output rows = Generate("-sm row -ts cpu:50%,products0:50% --numerics fast");
  EXPECT_EQ(rows.code, 0) << rows.errors;
  EXPECT_EQ(rows.errors, "Tri-Tier: rows of 32L over CPU + products0, fast\n");
}

TEST_F(NumericsCliTest, ACaptureSaysWhichNumericsItHas) {
  const std::string path = (folder_ / "story.capture").string();
  const std::string warning = "differences are no faults";
  const auto errors_of_replay = [&](const std::string& arguments) {
    const Output output = Run("replay " + path + kPlugin + arguments);
    EXPECT_EQ(output.code, 0) << output.text << output.errors;
    return output.errors;
  };
  ASSERT_EQ(Generate("--numerics fast --capture " + path).code, 0);
  EXPECT_EQ(errors_of_replay(""),
            "trine: the capture was made with fast numerics and is replayed with exact ones: " +
                warning + "\n");
  EXPECT_THAT(errors_of_replay("--numerics fast"), HasSubstr("with fast ones: " + warning));
  ASSERT_EQ(Generate("--capture " + path).code, 0);
  EXPECT_EQ(errors_of_replay(""), "");
  EXPECT_THAT(errors_of_replay("--numerics fast"),
              HasSubstr("made with exact numerics and is replayed with fast ones: " + warning));
}

TEST_F(NumericsCliTest, OtherWordsAreRefusedByEveryCommand) {
  for (const std::string& command : Commands()) {
    for (const char* word : {"slow", "FAST", "''"}) {
      ExpectRefused(command + " --numerics " + word, 2, "--numerics: ");
    }
  }
}

TEST_F(NumericsCliTest, DetectSaysWhyAFastDeviceIsNotUsed) {
  const Output table = Run(std::string("detect") + kPlugin);
  EXPECT_EQ(table.code, 0) << table.errors;
  EXPECT_THAT(table.text, HasSubstr(std::string("  no    ") + kOnlyFast + "\n"));
  const Output fast = Run(std::string("detect --numerics fast") + kPlugin);
  EXPECT_EQ(fast.code, 0) << fast.errors;
  EXPECT_THAT(fast.text, HasSubstr("  yes   serves the other tier, with fast numerics\n"));
  EXPECT_THAT(fast.text, Not(HasSubstr(kOnlyFast)));
  const Json report = Json::parse(Run(std::string("detect --json") + kPlugin).text, nullptr, false);
  ASSERT_TRUE(report.is_object());
  int found = 0;
  for (const Json& device : report["devices"]) {
    if (device.value("reason", "") != kOnlyFast) continue;
    EXPECT_EQ(device["used"], false) << device;
    ++found;
  }
  EXPECT_EQ(found, 1) << report["devices"];
}

TEST_F(NumericsCliTest, AFastDeviceIsRefusedByNameWithItsReason) {
  const std::string part = std::string("device 'products0' is not used: ") + kOnlyFast;
  for (const char* command :
       {"generate -p x -n 1", "bench -p 4 -n 0 -r 1", "plan", "calibrate --dry-run"}) {
    ExpectRefused(std::string(command) + kPlugin + "--device cpu,products0", 1, part);
  }
  ExpectRefused(std::string("plan -ot ffn_up=products0") + kPlugin, 1, part);
}

TEST_F(NumericsCliTest, PlansAndMeasurementsLeaveItOutAndSayWhy) {
  const Output plan = Run(std::string("plan") + kPlugin);
  EXPECT_EQ(plan.code, 0) << plan.errors;
  EXPECT_THAT(plan.text, HasSubstr(std::string("  products0 is left out: ") + kOnlyFast + "\n"));
  const Json json = Json::parse(Run(std::string("plan --json") + kPlugin).text, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_THAT(json["left_out"], Contains(Json({{"device", "products0"}, {"reason", kOnlyFast}})));
  const Output fast = Run(std::string("plan --numerics fast") + kPlugin);
  EXPECT_EQ(fast.code, 0) << fast.errors;
  EXPECT_THAT(fast.text, HasSubstr("products0"));
  EXPECT_THAT(fast.text, Not(HasSubstr(kOnlyFast)));
  // Beside a split, only devices with layers help, so the plan counts on no other.
  const Output beside = Run(std::string("plan --numerics fast --dispatch 2 -ts cpu:32") + kPlugin);
  EXPECT_EQ(beside.code, 0) << beside.errors;
  EXPECT_THAT(beside.text, Not(HasSubstr("the help of")));
  const Output alone = Run(std::string("plan --numerics fast --dispatch 2") + kPlugin);
  EXPECT_THAT(alone.text, HasSubstr("prefill with the help of products0"));
  EXPECT_THAT(alone.text,
              HasSubstr("products0 has no layers, it helps: it can run no whole layer"));
  if (std::getenv("TRINE_LONG") == nullptr) return;  // a measurement takes ten seconds
  const Output measured = Run(std::string("calibrate --dry-run --types f32 -t 1") + kPlugin);
  EXPECT_EQ(measured.code, 0) << measured.errors;
  EXPECT_THAT(measured.text, HasSubstr("cpu: "));
  EXPECT_THAT(measured.text, Not(HasSubstr("products0")));
  EXPECT_THAT(measured.errors,
              HasSubstr(std::string("trine: products0 is not measured: ") + kOnlyFast + "\n"));
}

// The name is the one that the user types, and not the chip's.
TEST_F(NumericsCliTest, ADeviceThatCantRunALayerIsCalledByItsName) {
  ExpectRefused(std::string("generate -p x --numerics fast --device products0") + kPlugin, 1,
                ": products0 can't run ");
}

TEST_F(NumericsCliTest, ListedDevicesSayWhichAreWithout) {
  const Output output = Run(std::string("generate --list-devices") + kPlugin);
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.errors, HasSubstr(std::string("without a device: products: ") + kOnlyFast));
  EXPECT_THAT(Run(std::string("generate --list-devices --numerics fast") + kPlugin).text,
              HasSubstr("products0: "));
}

// A server finds out when it loads the model, after it has printed its address.
TEST_F(NumericsCliTest, OptionsThatAPluginRefusesComeWithItsSentence) {
  const std::string part = "the plugin option 'color=blue' has no effect: " TRINE_PRODUCTS_PLUGIN
                           ": it could not be opened: the cpu backend has no options";
  for (const std::string& command : Commands()) {
    const Output output = Run(command + kPlugin + "--plugin-option color=blue </dev/null");
    EXPECT_EQ(output.code, 1) << command << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << command;
  }
}

TEST_F(NumericsCliTest, OptionsForPluginsThatAreMissingAreErrors) {
  const std::string part = "the plugin option 'x=1' has no effect: ";
  for (const std::string& command : Commands()) {
    const Output output = Run(command + " --plugin-option nowhere:x=1 </dev/null");
    EXPECT_EQ(output.code, 1) << command << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part + "there is no plugin 'nowhere'")) << command;
  }
  ExpectRefused("generate -p x --plugin-option x=1", 1,
                part + "it names no plugin, and --plugin names no file");
}

TEST_F(NumericsCliTest, OptionsThatCantBeReadExitWithTwo) {
  for (const std::string& command : Commands()) {
    ExpectRefused(command + " --plugin-option color", 2,
                  "'color' is no option for a plugin, [PLUGIN:]NAME=VALUE: there is no '='");
  }
  ExpectRefused("detect --plugin-option =1", 2, "there is no name before the '='");
  ExpectRefused("detect --plugin-option :x=1", 2, "there is no plugin before the ':'");
  ExpectRefused("detect --plugin-option 'x=1;y=2'", 2, "a ';' separates options");
}

// `plugin check` has the option that other commands have, for the one plugin that it opens.
TEST_F(NumericsCliTest, TheKitOpensThePluginWithOptions) {
  const std::string check = "plugin check --filter load/ ";
  const auto expect = [&](const char* options, const char* plugin, int code, const char* part) {
    const Output output = Run(check + options + " '" + plugin + "'");
    EXPECT_EQ(output.code, code) << options << "\n" << output.text << output.errors;
    EXPECT_THAT(output.text + output.errors, HasSubstr(part)) << options;
  };
  for (const char* options :
       {"--plugin-option x=1", "--plugin-option accepts-unknown-option:x=1 --plugin-option y=2",
        "--options x=1 --plugin-option y=2"}) {
    expect(options, TRINE_EASY_PLUGIN, 0, "conforms");
    expect("--plugin-option color=blue", TRINE_PRODUCTS_PLUGIN, 1, "no options");
  }
  expect("--plugin-option nowhere:x=1", TRINE_EASY_PLUGIN, 2,
         "--plugin-option nowhere:x=1: the plugin is called 'accepts-unknown-option'");
  expect("--plugin-option color", TRINE_EASY_PLUGIN, 2, "there is no '='");
}

TEST_F(NumericsCliTest, OptionsReachTheirPlugin) {
  const std::string easy = " --plugin '" TRINE_EASY_PLUGIN "' ";
  for (const char* option : {"x=1", "accepts-unknown-option:x=1"}) {
    const Output output = Run("detect" + easy + "--plugin-option " + option);
    EXPECT_EQ(output.code, 0) << option << "\n" << output.errors;
    EXPECT_EQ(output.errors, "") << option;
  }
}

}  // namespace
}  // namespace trine
