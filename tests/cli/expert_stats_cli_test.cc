// Tests --expert-stats from outside: the file, what --stats and plan say, and wrong files.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class ExpertStatsCliTest : public CliFixture {
 protected:
  ExpertStatsCliTest()
      : model_((folder_ / "moe.gguf").string()), stats_((folder_ / "stats.json").string()) {
    EXPECT_EQ(Trine("make-model --like tiny-qwen3moe " + model_).code, 0);
  }
  Output Generate(const std::string& arguments) {
    return Trine("generate -m " + model_ + " -p abc -n 20 --temp 0 --ignore-eos -t 1 " + arguments);
  }
  Json Stats() const {
    std::stringstream text;
    text << std::ifstream(stats_).rdbuf();
    return Json::parse(text.str(), nullptr, false);
  }

  const std::string model_, stats_;
  const std::string several_ = " --plugin '" TRINE_SEVERAL_PLUGIN "' ";
};

TEST_F(ExpertStatsCliTest, EachRunAddsToTheFile) {
  const Output plain = Generate("--logits-hash");
  EXPECT_EQ(plain.code, 0) << plain.errors;
  const Output first = Generate("--logits-hash --expert-stats " + stats_);
  EXPECT_EQ(first.code, 0) << first.errors;
  EXPECT_EQ(first.text, plain.text);
  const Json one = Stats();
  EXPECT_EQ(one["trine_expert_stats"], 1);
  EXPECT_EQ(one["model"]["architecture"], "qwen3moe");
  EXPECT_EQ(one["model"]["experts"], 8);
  EXPECT_EQ(one["hits"].size(), one["model"]["layers"]);
  const int tokens = one["tokens"];
  EXPECT_GT(tokens, 20);
  int sum = 0;
  for (const int hits : one["hits"][0]) sum += hits;
  EXPECT_EQ(sum, tokens * 3);
  // Experts in slots begin with what the file says, and the text stays.
  const Output second = Generate("--logits-hash --hot-experts 2 -ts several0:100% --stats" +
                                 several_ + "--expert-stats " + stats_);
  EXPECT_EQ(second.code, 0) << second.errors;
  EXPECT_EQ(second.text, plain.text);
  EXPECT_EQ(Stats()["tokens"], 2 * tokens);
  EXPECT_THAT(second.errors, ContainsRegex("experts in slots of several0: [0-9.]+ % of what"));
  EXPECT_THAT(second.errors,
              ContainsRegex("experts: the most chosen tenth got [0-9]+ % of [0-9,]+ choices\n"));
}

TEST_F(ExpertStatsCliTest, JsonHasWhatStatsPrints) {
  const Output output = Generate("--json --stats --hot-experts 2 -ts several0:100%" + several_ +
                                 "--expert-stats " + stats_);
  ASSERT_EQ(output.code, 0) << output.errors;
  const Json experts = Json::parse(output.text)["stats"]["experts"];
  EXPECT_GT(experts["choices"], 0);
  EXPECT_GT(experts["top_tenth_share"], 0.1);
  EXPECT_LE(experts["top_tenth_share"], 1);
  ASSERT_EQ(experts["segments"].size(), 1u);
  EXPECT_EQ(experts["segments"][0]["device"], "several0");
  EXPECT_LE(experts["segments"][0]["in_slots"], experts["segments"][0]["choices"]);
  // Without the file nothing is counted that is on one device.
  const Output uncounted = Generate("--json --stats");
  EXPECT_FALSE(Json::parse(uncounted.text)["stats"].contains("experts"));
  EXPECT_THAT(Generate("--stats").errors, Not(HasSubstr("most chosen tenth")));
}

TEST_F(ExpertStatsCliTest, WrongFilesAreRefusedInASentence) {
  const std::string option = "--expert-stats " + stats_;
  const Output dense = Trine("generate -p a -n 1 " + option);
  EXPECT_EQ(dense.code, 1);
  EXPECT_EQ(dense.errors, "trine: expert stats, " + stats_ + ": the model has no experts\n");
  std::ofstream(stats_) << "{\"trine_expert_stats\": 7}";
  const Output format = Generate(option);
  EXPECT_EQ(format.code, 1);
  EXPECT_EQ(format.errors,
            "trine: " + stats_ + ": its format is not 1, the one that is known here\n");
  EXPECT_EQ(Stats()["trine_expert_stats"], 7) << "the file stays";
  EXPECT_EQ(Generate("--expert-stats ''").code, 2);
  EXPECT_EQ(Generate("--expert-stats " + folder_.string()).errors,
            "trine: " + folder_.string() + ": it is no file\n");
}

TEST_F(ExpertStatsCliTest, PlanKnowsWhatSlotsGet) {
  ASSERT_EQ(Generate("--expert-stats " + stats_).code, 0);
  const std::string file = Stats().dump();
  const std::string plan = "plan -m " + model_ + " -t 1 -ts several0:100%" + several_;
  const auto elsewhere = [&](const std::string& arguments) {
    const Output output = Trine(plan + " --json " + arguments);
    EXPECT_EQ(output.code, 0) << output.errors;
    return Json::parse(output.text, nullptr, false)["segments"][0]["elsewhere"][0];
  };
  const Json away = elsewhere("--cpu-moe"), even = elsewhere("--hot-experts 4");
  const Json known = elsewhere("--hot-experts 4 --expert-stats " + stats_);
  EXPECT_FALSE(away.contains("slots"));
  EXPECT_EQ(even["slots"], 4);
  EXPECT_EQ(even["experts"], 8);
  EXPECT_DOUBLE_EQ(even["slot_share"], 0.5);
  EXPECT_GT(known["slot_share"], 0.5);
  EXPECT_EQ(known["what"], "experts");
  EXPECT_LT(even["decode_ms"], away["decode_ms"]) << "the CPU computes fewer experts";
  EXPECT_LT(known["decode_ms"], even["decode_ms"]);
  const Output text = Trine(plan + " --hot-experts 4 --expert-stats " + stats_);
  EXPECT_THAT(text.text, ContainsRegex("experts, 4 of 8 in slots too: [0-9]+ % of choices"));
  // Only the CPU's part has experts.
  const Output both = Trine(
      plan + " --json --hot-experts 4 -ot blk.0.attn_output=several1 --expert-stats " + stats_);
  std::map<std::string, bool> has_slots;
  const Json parts = Json::parse(both.text, nullptr, false)["segments"][0]["elsewhere"];
  for (const Json& part : parts) has_slots[part["device"]] = part.contains("slots");
  EXPECT_THAT(has_slots, UnorderedElementsAre(Pair("cpu", true), Pair("several1", false)));
  EXPECT_EQ(Stats().dump(), file) << "plan only reads it";
  const Output absent = Trine(plan + " --expert-stats " + stats_ + ".absent");
  EXPECT_EQ(absent.errors, "trine: " + stats_ + ".absent: there is no such file\n");
}

TEST_F(ExpertStatsCliTest, BenchOnlyReadsIt) {
  ASSERT_EQ(Generate("--expert-stats " + stats_).code, 0);
  const std::string file = Stats().dump();
  const Output bench = Trine("bench -m " + model_ + " -p 8 -n 4 -r 1 -t 1 --no-bandwidth " +
                             "--expert-stats " + stats_);
  EXPECT_EQ(bench.code, 0) << bench.errors;
  EXPECT_EQ(Stats().dump(), file);
}

}  // namespace
}  // namespace trine
