// `trine plan`, `trine calibrate` and the planner's options, as a user meets them.
#include <algorithm>
#include <cstdint>
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

TEST_F(PlanCliTest, JsonAddsUp) {
  const Json plan = Plan("-ts other0:20,cpu:12");
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
  EXPECT_EQ(plan["segments"][0]["device"], "other0");
  EXPECT_EQ(plan["segments"][0]["end_layer"], 20);
  EXPECT_EQ(plan["segments"][1]["head"], true);
}

TEST_F(PlanCliTest, LimitsBindAndAreNamed) {
  const Json plan = Plan(
      "--split-strategy memory --device-memory other0:30M,other1:30M "
      "--device cpu,other0,other1 -c 256 -b 32");
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
    named = named || (out["device"] == "other2" &&
                      out["reason"].get<std::string>().find("not asked for") != std::string::npos);
  }
  EXPECT_TRUE(named) << plan["left_out"];
}

TEST_F(PlanCliTest, MeasuresWhatItPredicts) {
  const std::string picture = (folder_ / "plan.svg").string();
  const Json plan = Plan("-ts cpu:16,other0:16 --measure --svg " + picture);
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

TEST_F(PlanCliTest, CalibrationIsKeptAndUsed) {
  const Output measured = Run("calibrate --device cpu --types q8_0,f32");
  EXPECT_EQ(measured.code, 0) << measured.errors;
  EXPECT_THAT(measured.text, HasSubstr("q8_0"));
  EXPECT_THAT(measured.text, HasSubstr("kept in " + calibration()));
  EXPECT_EQ(Leftovers(), 0);
  const Output plan = Run("plan");
  EXPECT_THAT(plan.text, HasSubstr("calibrated"));
  EXPECT_THAT(plan.text, Not(HasSubstr("guessed")));
  // With other threads nothing has been measured.
  EXPECT_THAT(Run("plan -t 1").text, HasSubstr("guessed"));
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

TEST_F(PlanCliTest, DecisionsAreSaidToThoseWhoAsk) {
  const std::string job =
      "generate -p 'Once upon a time' -n 2 --temp 0 -t 1 --json -ts cpu:30,other2:2 "
      "--plugin '" TRINE_SEVERAL_PLUGIN "' --dispatch 3";
  const Output quiet = Run(job), told = Trine(job, "TRINE_DISPATCH=log");
  ASSERT_EQ(quiet.code, 0) << quiet.errors;
  EXPECT_THAT(quiet.errors, Not(HasSubstr("dispatch")));
  EXPECT_THAT(told.errors, HasSubstr("dispatch: cpu, layers 0-29, ffn_up.weight q8_0 [256, 768]"));
  EXPECT_THAT(told.errors, HasSubstr("cpu up to 2 (fewer than 3 tokens), other2 from 3 on"));
  EXPECT_THAT(told.errors, HasSubstr("a pass of 4 tokens: with other2"));
  EXPECT_THAT(told.errors, HasSubstr("a pass of 1 token: where its layers are"));
  const auto json = nlohmann::json::parse(told.text, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["placement"][0]["helper"], "other2");
  EXPECT_EQ(json["placement"][0]["detours"], 1);
}

TEST_F(PlanCliTest, TheLineAtTheStartSaysWhereItIs) {
  const Output output =
      Run("generate -p Once -n 1 -ts other0:20,cpu:12 --plugin '" TRINE_SEVERAL_PLUGIN "'");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("Tri-Tier: other0(20L) + CPU(12L)\n"));
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
  wrong("plan --svg /no/such/folder/plan.svg", 1, "/no/such/folder");
  wrong("plan -m /no/such/model.gguf", 1, "/no/such/model.gguf");
  wrong("calibrate --device dgpu7", 1, "dgpu7");
  wrong("calibrate --types q9_9", 2, "q9_9");
  wrong("calibrate --device cpu --types q8_0 --file /proc/none/c.json", 1, "/proc/none");
}

}  // namespace
}  // namespace trine
