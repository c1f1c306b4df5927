// Tests `trine plan`, `trine calibrate` and the planner's options from outside.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class PlanCliTest : public CliFixture {
 protected:
  std::string Environment() const { return "TRINE_CALIBRATION=" + calibration(); }
  std::string calibration() const { return (folder_ / "cal" / "calibration.json").string(); }
  Output Run(const std::string& arguments) { return Trine(arguments, Environment()); }
  // Makes the calibration file. Measures once for all tests.
  void Calibrate() {
    static std::string measured;
    if (measured.empty()) {
      ASSERT_EQ(Run("calibrate --device cpu --types q8_0").code, 0);
      std::stringstream text;
      text << std::ifstream(calibration()).rdbuf();
      measured = text.str();
    }
    fs::create_directories(folder_ / "cal");
    std::ofstream(calibration()) << measured;
  }
  Json Plan(const std::string& arguments) {
    const Output output = Run("plan --json --plugin '" TRINE_SEVERAL_PLUGIN "' -t 1 " + arguments);
    EXPECT_EQ(output.code, 0) << output.errors;
    return Json::parse(output.text, nullptr, false);
  }
};

TEST_F(PlanCliTest, ATableThatSaysWhatIsGuessed) {
  const Output output = Run("plan");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, HasSubstr("32 layers"));
  EXPECT_THAT(output.text, HasSubstr("embedding + layers 0-31 + head"));
  EXPECT_THAT(output.text, HasSubstr("`trine calibrate` measures them"));
  const Output layers = Run("plan --layers");
  EXPECT_THAT(layers.text, HasSubstr("layer 31"));
}

TEST_F(PlanCliTest, WithoutADeviceTheReasonIsSaid) {
  for (const char* command : {"plan", "plan --json", "calibrate"}) {
    const Output output = Trine(command, Environment() + " TRINE_CPU_ISA=none-such");
    EXPECT_EQ(output.code, 1) << command;
    EXPECT_THAT(output.errors, HasSubstr("none-such: this build has no such level")) << command;
    EXPECT_EQ(output.text, "") << command;
  }
}

// Also lists devices of plugins that a run without names would not probe.
TEST_F(PlanCliTest, TellsOfAllDevices) {
  std::filesystem::create_symlink(TRINE_HARDWARE_PLUGIN, folder_ / "libtrine-backend-hardware.so");
  const Output output =
      Trine("plan --json", Environment() + " TRINE_PLUGIN_PATH=" + folder_.string());
  EXPECT_EQ(output.code, 0) << output.errors;
  const Json plan = Json::parse(output.text, nullptr, false);
  EXPECT_THAT(plan["devices"].dump(), HasSubstr(R"("device":"hardware0")"));
}

TEST_F(PlanCliTest, JsonAddsUp) {
  const Json plan = Plan("-ts several0:20,cpu:12");
  EXPECT_EQ(plan["strategy"], "asked for");
  ASSERT_EQ(plan["segments"].size(), 2u);
  double decode = 0;
  for (const Json& segment : plan["segments"]) {
    decode += segment["decode_ms"].get<double>() + segment["decode_transfer_ms"].get<double>();
    uint64_t weights = 0;
    for (const Json& part : segment["parts"]) weights += part["weight_bytes"].get<uint64_t>();
    EXPECT_EQ(weights, segment["weight_bytes"].get<uint64_t>());
  }
  EXPECT_NEAR(decode, plan["decode_ms"].get<double>(), 1e-6);
  EXPECT_EQ(plan["segments"][0]["device"], "several0");
  EXPECT_EQ(plan["segments"][0]["end_layer"], 20);
  EXPECT_EQ(plan["segments"][1]["head"], true);
}

TEST_F(PlanCliTest, LimitsBindAndAreNamed) {
  const Json plan = Plan(
      "--split-strategy memory --device-memory several0:30M,several1:30M "
      "--device cpu,several0,several1 -c 256 -b 32");
  uint64_t most = 0;
  for (const Json& device : plan["devices"]) {
    if (device["device"] == "cpu") continue;
    most = std::max(most, device["used_bytes"].get<uint64_t>());
  }
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, 30u << 20);
  EXPECT_EQ(plan["strategy"], "memory");
  bool named = false;
  for (const Json& out : plan["left_out"]) {
    named = named || (out["device"] == "several2" &&
                      out["reason"].get<std::string>().find("not asked for") != std::string::npos);
  }
  EXPECT_TRUE(named) << plan["left_out"];
}

TEST_F(PlanCliTest, MeasuresWhatItPredicts) {
  const std::string picture = (folder_ / "plan.svg").string();
  const Json plan = Plan("-ts cpu:16,several0:16 --measure --svg " + picture);
  EXPECT_GT(plan["measured_decode_ms"].get<double>(), 0);
  EXPECT_GT(plan["measured_prefill_ms"].get<double>(), plan["measured_decode_ms"].get<double>());
  for (const Json& segment : plan["segments"]) {
    EXPECT_GT(segment["measured_decode_ms"].get<double>(), 0);
  }
  std::stringstream svg;
  svg << std::ifstream(picture).rdbuf();
  EXPECT_THAT(svg.str(), HasSubstr("<svg "));
  EXPECT_THAT(svg.str(), HasSubstr("layers 16-31 + head"));
  EXPECT_THAT(svg.str(), HasSubstr("decode, measured"));
}

TEST_F(PlanCliTest, LayersHaveAMeasuredColumnToo) {
  const Output output = Run(
      "plan --layers --measure -t 1 -ts cpu:16,several0:16 --plugin '" TRINE_SEVERAL_PLUGIN "'");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, HasSubstr("measured"));
  EXPECT_THAT(output.text, HasSubstr("~: segments are measured"));
  const std::string row = output.text.substr(output.text.find("layer 20 "));
  const std::string line = row.substr(0, row.find('\n'));
  EXPECT_EQ(std::count(line.begin(), line.end(), '~'), 2) << line;
}

TEST_F(PlanCliTest, RowsAreShownWhereTheyAre) {
  const Json plan = Plan("-sm row -ts cpu:75%,several0:25%");
  EXPECT_EQ(plan["split"], "row");
  EXPECT_GT(plan["decode_ms"], 0);
  ASSERT_EQ(plan["segments"][0]["elsewhere"].size(), 1u);
  EXPECT_EQ(plan["segments"][0]["elsewhere"][0]["what"], "rows");
  EXPECT_EQ(plan["segments"][0]["elsewhere"][0]["device"], "several0");
  EXPECT_GT(plan["segments"][0]["elsewhere"][0]["decode_ms"], 0);
  ASSERT_EQ(plan["moved"].size(), 1u);
  EXPECT_EQ(plan["moved"][0]["device"], "several0");
  EXPECT_GT(plan["moved"][0]["shared_matrices"], 200);
  const uint64_t moved = plan["moved"][0]["weight_bytes"].get<uint64_t>();
  const uint64_t kept = plan["segments"][0]["weight_bytes"].get<uint64_t>();
  EXPECT_NEAR(static_cast<double>(moved), static_cast<double>(moved + kept) / 4,
              static_cast<double>(moved + kept) / 20);
  for (const Json& device : plan["devices"]) {
    const uint64_t used = device["used_bytes"].get<uint64_t>();
    if (device["device"] == "several0") {
      EXPECT_GE(used, moved);
    } else if (device["device"] == "cpu") {
      EXPECT_GE(used, kept);
    } else {
      EXPECT_EQ(used, 0u) << device;
    }
  }
  const Output text = Run(
      "plan -t 1 -sm row -ts cpu:75%,several0:25% --measure --plugin '" TRINE_SEVERAL_PLUGIN "'");
  EXPECT_EQ(text.code, 0) << text.errors;
  EXPECT_THAT(text.text, Not(HasSubstr("not predicted")));
  EXPECT_THAT(text.text, HasSubstr("  rows"));
  EXPECT_THAT(text.text, HasSubstr("by rows of matrices"));
}

TEST_F(PlanCliTest, SoAreTensorsPlacedByName) {
  const Json all = Plan("--device cpu"), plan = Plan("-ts cpu:32 -ot 'ffn_down=several1'");
  ASSERT_EQ(plan["moved"].size(), 1u);
  EXPECT_EQ(plan["moved"][0]["device"], "several1");
  EXPECT_EQ(plan["moved"][0]["whole_matrices"], 32);
  EXPECT_EQ(plan["moved"][0]["shared_matrices"], 0);
  EXPECT_LT(plan["segments"][0]["weight_bytes"], all["segments"][0]["weight_bytes"]);
  EXPECT_GT(plan["request_ms"], all["request_ms"]) << "each layer waits for another device";
  EXPECT_EQ(plan["segments"][0]["elsewhere"][0]["what"], "weights");
  // The planner places the layers, and one tensor is moved.
  const Json planned = Plan("--device cpu -ot 'blk.3.ffn_up=several2'");
  EXPECT_EQ(planned["strategy"], "auto");
  EXPECT_EQ(planned["moved"][0]["whole_matrices"], 1);
  const std::string picture = (folder_ / "plan.svg").string();
  Plan("-ts cpu:32 -ot 'ffn_down=several1' --svg " + picture);
  std::stringstream svg;
  svg << std::ifstream(picture).rdbuf();
  EXPECT_THAT(svg.str(), HasSubstr("decode, predicted"));
  EXPECT_THAT(svg.str(), HasSubstr("on several1"));
}

TEST_F(PlanCliTest, AnInterruptedCalibrationLeavesTheFileAlone) {
  fs::create_directories(folder_ / "cal");
  std::ofstream(calibration()) << "not json";
  const Output output = Shell("( " + Environment() +
                              " timeout -s INT 0.5 '" TRINE_PROGRAM "' calibrate --device cpu )");
  EXPECT_THAT(output.errors, HasSubstr("nothing was kept"));
  std::stringstream text;
  text << std::ifstream(calibration()).rdbuf();
  EXPECT_EQ(text.str(), "not json");
  EXPECT_EQ(Leftovers(), 0);
}

TEST_F(PlanCliTest, CalibrationIsKeptAndUsed) {
  const Output measured = Run("calibrate --device cpu --types q8_0,f32");
  EXPECT_EQ(measured.code, 0) << measured.errors;
  EXPECT_THAT(measured.text, HasSubstr("q8_0"));
  EXPECT_THAT(measured.text, HasSubstr("kept in " + calibration()));
  EXPECT_EQ(Leftovers(), 0);
  const Output plan = Run("plan");
  EXPECT_THAT(plan.text, HasSubstr("calibrated"));
  EXPECT_THAT(plan.text, Not(HasSubstr("guessed")));
  // Nothing has been measured with another number of threads.
  EXPECT_THAT(Run("plan -t 1").text, HasSubstr("guessed"));
}

TEST_F(PlanCliTest, ADeviceOfProductsAloneIsCalibrated) {
  const std::string options = " -t 1 --numerics fast --plugin '" TRINE_PRODUCTS_PLUGIN "'";
  const Output measured = Run("calibrate --device products0 --types q8_0,f32" + options);
  EXPECT_EQ(measured.code, 0) << measured.errors;
  EXPECT_THAT(measured.text, HasSubstr("norm: not measured, but guessed ("));
  EXPECT_THAT(measured.text, HasSubstr("kept in " + calibration()));
  const Output plan = Run("plan" + options);
  EXPECT_EQ(plan.code, 0) << plan.errors;
  EXPECT_THAT(plan.text, HasSubstr("products0 could not be measured whole; guessed are: norm, "));
}

TEST_F(PlanCliTest, ACalibrationOfABusyMachineIsMarked) {
  Calibrate();
  const std::string seen = "other processes used 1.4 of 2 processors";
  auto json = nlohmann::json::parse(std::ifstream(calibration()));
  for (auto& device : json["devices"]) device["busy"] = seen;
  std::ofstream(calibration()) << json;
  EXPECT_THAT(Run("plan").text, HasSubstr("cpu was calibrated on a busy machine: " + seen));
  const Json plan = Json::parse(Run("plan --json").text, nullptr, false);
  EXPECT_EQ(plan["devices"][0]["calibrated_while_busy"], seen);
  EXPECT_THAT(Run("detect").text, HasSubstr("on a busy machine: " + seen));
  for (auto& device : json["devices"]) device.erase("busy");
  std::ofstream(calibration()) << json;
  EXPECT_THAT(Run("plan").text, Not(HasSubstr("busy")));
  EXPECT_THAT(Run("detect").text, Not(HasSubstr("busy")));
}

TEST_F(PlanCliTest, ADamagedCalibrationCostsAWarning) {
  fs::create_directories(folder_ / "cal");
  std::ofstream(calibration()) << "not json";
  // One device needs no plan; two do.
  const Output output = Run("plan --plugin '" TRINE_SEVERAL_PLUGIN "'");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("times are guessed"));
  const Output anew = Run("calibrate --device cpu --types q8_0");
  EXPECT_EQ(anew.code, 0) << anew.errors;
  EXPECT_THAT(anew.errors, HasSubstr("written anew"));
}

TEST_F(PlanCliTest, NumbersThatMakeNoSenseCostAWarning) {
  Calibrate();
  auto json = nlohmann::json::parse(std::ifstream(calibration()));
  for (auto& device : json["devices"]) device["bytes_per_second"] = -1;
  std::ofstream(calibration()) << json;
  const Output output = Run("plan");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("1 of its entries make no sense"));
  EXPECT_THAT(output.text, HasSubstr("guessed"));
}

TEST_F(PlanCliTest, ADeviceThatFailsIsPlannedAndMeasuredWithout) {
  const Output output =
      Trine("plan --measure -c 256 -t 1 --device cpu,several1 --plugin '" TRINE_SEVERAL_PLUGIN "'",
            "TRINE_FAULT='several1:lost@query=1'");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("several1 is not used: "));
  EXPECT_THAT(output.text, HasSubstr("measured"));
}

TEST_F(PlanCliTest, DecisionsAreSaidToThoseWhoAsk) {
  const std::string job =
      "generate -p 'Once upon a time' -n 2 --temp 0 -t 1 --json -ts cpu:30,several2:2 "
      "--plugin '" TRINE_SEVERAL_PLUGIN "' --dispatch 3";
  const Output quiet = Run(job), told = Trine(job, "TRINE_DISPATCH=log");
  ASSERT_EQ(quiet.code, 0) << quiet.errors;
  EXPECT_THAT(quiet.errors, Not(HasSubstr("dispatch")));
  EXPECT_THAT(told.errors, HasSubstr("dispatch: cpu, layers 0-29, ffn_up.weight q8_0 [256, 768]"));
  EXPECT_THAT(told.errors, HasSubstr("cpu up to 2 (fewer than 3 tokens), several2 from 3 on"));
  EXPECT_THAT(told.errors, HasSubstr("a pass of 4 tokens: with several2"));
  EXPECT_THAT(told.errors, HasSubstr("a pass of 1 token: where its layers are"));
  const auto json = nlohmann::json::parse(told.text, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["placement"][0]["helper"], "several2");
  EXPECT_EQ(json["placement"][0]["detours"], 1);
}

TEST_F(PlanCliTest, TheLineAtTheStartSaysWhereItIs) {
  const std::string job =
      "generate -p Once -n 1 -ts several0:20,cpu:12 --plugin '" TRINE_SEVERAL_PLUGIN
      "' --dispatch ";
  const Output alone = Run(job + "off");
  EXPECT_EQ(alone.code, 0) << alone.errors;
  EXPECT_EQ(alone.errors, "Tri-Tier: several0(20L) + CPU(12L)\n");
  const Output helped = Run(job + "2");
  EXPECT_EQ(helped.code, 0) << helped.errors;
  EXPECT_THAT(helped.errors, HasSubstr("Tri-Tier: several0(20L, prompts by cpu)"));
}

TEST_F(PlanCliTest, BadInputGetsOneLine) {
  const auto wrong = [&](const std::string& arguments, int code, const std::string& part) {
    const Output output = Run(arguments);
    EXPECT_EQ(output.code, code) << arguments << ": " << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_EQ(std::count(output.errors.begin(), output.errors.end(), '\n'), 1) << output.errors;
  };
  wrong("plan --split-strategy best", 2, "--split-strategy");
  wrong("plan --device-memory dgpu:3", 2, "dgpu:2G");
  wrong("plan --device-memory 3,1", 2, "dgpu:2G");
  wrong("plan --device dgpu7", 1, "dgpu7");
  wrong("plan --device cpu:3", 2, "--tensor-split");
  wrong("plan --trace t.json", 2, "--measure");
  wrong("plan --split-strategy memory --optimize throughput", 2, "--split-strategy auto");
  wrong("plan --optimize latency --split-strategy balanced", 2, "--split-strategy auto");
  wrong("plan -ts cpu:4", 1, "must add up to 32; there are: cpu");
  wrong("plan -ts cpu:1M", 1, "1.0 MiB on cpu is 0 layers (layer 0 takes 2.9 MiB)");
  wrong("plan --svg /no/such/folder/plan.svg", 1, "/no/such/folder");
  wrong("plan -m /no/such/model.gguf", 1, "/no/such/model.gguf");
  wrong("calibrate --device dgpu7", 1, "dgpu7");
  wrong("calibrate --types q9_9", 2, "q9_9");
  wrong("calibrate --device cpu --types q8_0 --file /proc/none/c.json", 1, "/proc/none");
}

}  // namespace
}  // namespace trine
