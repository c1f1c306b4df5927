// Tests trine bench from outside: the forms of its output and what it refuses, not speeds.
#include <signal.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class BenchCliTest : public CliFixture {
 protected:
  BenchCliTest() : model_((folder_ / "tiny.gguf").string()) {
    EXPECT_EQ(Trine("make-model --like tiny-qwen3 " + model_).code, 0);
  }
  Output Bench(const std::string& arguments) {
    return Trine("bench -m " + model_ + " " + arguments);
  }
  Json BenchJson(const std::string& arguments) {
    const Output output = Bench("-o json " + arguments);
    EXPECT_EQ(output.code, 0) << output.errors;
    EXPECT_EQ(output.errors, "") << arguments;
    return Json::parse(output.text, nullptr, false);
  }
  // Measures on the devices of a plugin. Returns the only result.
  Json OnDevices(const std::string& plugin, const std::string& arguments) {
    const Output output =
        Bench("-o json -p 6 -n 0 -t 1 -r 1 --plugin '" + plugin + "' " + arguments);
    EXPECT_EQ(output.code, 0) << arguments << "\n" << output.errors;
    const Json results = Json::parse(output.text, nullptr, false);
    EXPECT_TRUE(results.is_array() && results.size() == 1) << output.text;
    return results.is_array() && results.size() == 1 ? results[0] : Json::object();
  }
  void ExpectRefused(const std::string& arguments, const std::string& part, int code) {
    const Output output = Trine("bench " + arguments);
    EXPECT_EQ(output.code, code) << arguments << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_THAT(output.errors, StartsWith("trine: ")) << arguments;
    EXPECT_EQ(std::count(output.errors.begin(), output.errors.end(), '\n'), 1) << output.errors;
    EXPECT_EQ(output.text, "") << arguments;
  }

  std::string model_;
};

TEST_F(BenchCliTest, EveryCombinationInJson) {
  const Json results = BenchJson("-p 5,3 -n 2 -pg 4,3 -d 0,6 -t 1,2 -r 2 -ctk f16,q8_0");
  ASSERT_EQ(results.size(), 2u * 2 * 2 * 4);
  int64_t prompts = 0, decodes = 0;
  for (const Json& r : results) {
    ASSERT_EQ(r["samples_ns"].size(), 2u);
    ASSERT_EQ(r["samples_ts"].size(), 2u);
    const double tokens = r["n_prompt"].get<double>() + r["n_gen"].get<double>();
    const double ns = r["samples_ns"][0].get<double>();
    EXPECT_GT(ns, 0);
    EXPECT_NEAR(r["samples_ts"][0].get<double>() * ns / 1e9, tokens, 1e-6);
    EXPECT_NEAR(r["avg_ns"].get<double>(), (ns + r["samples_ns"][1].get<double>()) / 2, 1);
    EXPECT_GT(r["load_ns"].get<int64_t>(), 0);
    for (const char* fact : {"cpu_info", "cpu_level", "version", "test_time", "model_type"}) {
      EXPECT_NE(r[fact].get<std::string>(), "") << fact;
    }
    const bool decode = r["n_prompt"] == 0;
    ASSERT_EQ(r["bytes_per_token"].is_number(), decode);
    ASSERT_EQ(r["machine_read_share"].is_number(), decode);
    prompts += r["n_gen"] == 0;
    decodes += decode;
    if (!decode) continue;
    EXPECT_DOUBLE_EQ(r["bytes_per_token"].get<double>(), r["weight_bytes_per_token"].get<double>() +
                                                             r["kv_bytes_per_token"].get<double>());
    EXPECT_NEAR(
        r["read_bytes_per_second"].get<double>() / r["machine_read_bytes_per_second"].get<double>(),
        r["machine_read_share"].get<double>(), 1e-9);
  }
  EXPECT_EQ(prompts, 16);
  EXPECT_EQ(decodes, 8);
  EXPECT_EQ(results[0]["test"], "pp5");
  EXPECT_EQ(results[2]["test"], "tg2");
  EXPECT_EQ(results[7]["test"], "pp4+tg3 @ d6");
}

TEST_F(BenchCliTest, ATokenDeeperDownReadsMoreOfTheCache) {
  const Json results = BenchJson("-p 0 -n 2 -d 0,10 -t 1 -r 1 --no-bandwidth --no-warmup");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0]["weight_bytes_per_token"], results[1]["weight_bytes_per_token"]);
  // At 1.5 positions on average, and at 11.5.
  EXPECT_DOUBLE_EQ(results[1]["kv_bytes_per_token"].get<double>() / 11.5,
                   results[0]["kv_bytes_per_token"].get<double>() / 1.5);
  EXPECT_TRUE(results[0]["machine_read_bytes_per_second"].is_null());
  EXPECT_TRUE(results[0]["machine_read_share"].is_null());
}

TEST_F(BenchCliTest, OtherFormatsSayTheSame) {
  const std::string what = "-p 4 -n 2 -t 1 -r 2 ";
  const Output markdown = Bench(what);
  EXPECT_EQ(markdown.code, 0) << markdown.errors;
  const std::vector<std::string> table = Lines(markdown.text);
  ASSERT_GE(table.size(), 4u);
  EXPECT_THAT(table[0], ContainsRegex("^\\| model .*\\| +params \\|.*\\| test .*\\| +t/s \\|"));
  EXPECT_THAT(table[1], StartsWith("| ---"));
  EXPECT_THAT(table[2], ContainsRegex("\\| pp4 +\\| +[0-9.]+ ± [0-9.]+ \\|"));
  EXPECT_THAT(table[3], ContainsRegex("\\| tg2 .* %  *\\|$"));
  EXPECT_THAT(markdown.text, HasSubstr("\nload: "));

  const Output lines = Bench(what + "-o jsonl");
  ASSERT_EQ(Lines(lines.text).size(), 2u) << lines.text;
  for (const std::string& line : Lines(lines.text)) EXPECT_TRUE(Json::accept(line)) << line;

  const Output csv = Bench(what + "-o csv");
  const std::vector<std::string> rows = Lines(csv.text);
  ASSERT_EQ(rows.size(), 3u) << csv.text;
  EXPECT_THAT(rows[0], HasSubstr("\"n_prompt\",\"n_gen\",\"n_depth\""));
  for (const std::string& row : rows) {
    EXPECT_EQ(std::count(row.begin(), row.end(), ','),
              std::count(rows[0].begin(), rows[0].end(), ','))
        << row;
  }
}

TEST_F(BenchCliTest, TimesOps) {
  const Json results = BenchJson("-p 0 -n 4 -t 1 -r 1 --ops --no-bandwidth");
  ASSERT_EQ(results.size(), 1u);
  const Json& times = results[0]["op_times"];
  EXPECT_EQ(times["n_tokens"], 4);
  EXPECT_GT(times["run_ns_per_token"].get<double>(), 0);
  EXPECT_LE(times["run_ns_per_token"].get<double>(), times["wall_ns_per_token"].get<double>());
  EXPECT_FALSE(times["ops"].empty());
  double sum = 0;
  for (const Json& op : times["ops"]) {
    EXPECT_GT(op["calls"].get<int64_t>(), 0);
    sum += op["ns_per_token"].get<double>();
  }
  EXPECT_NEAR(sum, times["op_ns_per_token"].get<double>(), 1);
  EXPECT_LE(sum, times["run_ns_per_token"].get<double>());
  EXPECT_THAT(Bench("-p 0 -n 2 -t 1 -r 1 --ops").text, HasSubstr("outside plan runs"));
}

TEST_F(BenchCliTest, JsonIsWholeWhenALaterSetupFails) {
  const Output output = Bench("-o json -p 0 -n 2 -t 1 -r 1 --no-bandwidth -ts cpu:3 -ts nowhere:3");
  EXPECT_EQ(output.code, 1) << output.errors;
  EXPECT_THAT(output.errors, HasSubstr("nowhere"));
  const Json results = Json::parse(output.text, nullptr, false);
  ASSERT_TRUE(results.is_array()) << output.text;
  EXPECT_EQ(results.size(), 1u);
}

// Signals arrive in its second test, and in its first; each would take much longer than this.
TEST_F(BenchCliTest, JsonIsWholeWhenItIsInterrupted) {
  struct Signal {
    const char* name;
    int number;
  };
  for (const Signal signal : {Signal{"TERM", SIGTERM}, {"HUP", SIGHUP}}) {
    // Under nohup, the program would inherit an ignored hang-up.
    struct sigaction usual {
    }, before{};
    usual.sa_handler = SIG_DFL;
    sigaction(signal.number, &usual, &before);
    for (const bool after_result : {true, false}) {
      const std::string out = (folder_ / "out.json").string();
      const std::string mask = std::to_string(1 << (signal.number - 1));
      const std::string is_caught =
          "[ $(( 0x$(awk '/SigCgt/ { print $2 }' /proc/$pid/status) & " + mask + " )) != 0 ]";
      const Output output =
          Shell("( '" TRINE_PROGRAM "' bench -m " + model_ + " -n 0 -t 1 -o json --no-warmup -p " +
                (after_result ? "3,200 -r 10000" : "200 -r 100000") + " > " + out +
                " & pid=$!; while ! " + (after_result ? "grep -q '}' " + out : is_caught) +
                " && kill -0 $pid; do sleep 0.05; done; kill -" + signal.name +
                " $pid; wait $pid; code=$?; cat " + out + "; exit $code )");
      EXPECT_EQ(output.code, 130) << output.errors;
      const Json results = Json::parse(output.text, nullptr, false);
      ASSERT_TRUE(results.is_array()) << output.text;
      EXPECT_EQ(results.size(), after_result ? 1u : 0u);
    }
    sigaction(signal.number, &before, nullptr);
  }
}

TEST_F(BenchCliTest, MeasuresOnTheDevicesThatAreAskedFor) {
  const auto on = [&](const std::string& arguments) {
    return OnDevices(TRINE_SEVERAL_PLUGIN, "--dispatch off " + arguments);
  };
  const Json usual = on("");
  EXPECT_EQ(usual["devices"], "");
  EXPECT_EQ(usual["split_mode"], "layer");
  EXPECT_EQ(usual["override_tensor"], "");
  EXPECT_EQ(usual["numerics"], "exact");
  EXPECT_EQ(usual["device_memory"], "");
  EXPECT_EQ(usual["busy_shares"], Json::object());
  const Json device = on("-dev several1");
  EXPECT_EQ(device["devices"], "several1");
  EXPECT_EQ(device["backends"], "several1");
  EXPECT_EQ(device["placement"], "several1(3L)");
  const Json rows = on("-sm row -ts cpu:50%,several1:50%");
  EXPECT_EQ(rows["split_mode"], "row");
  EXPECT_EQ(rows["backends"], "cpu+several1");
  EXPECT_EQ(rows["placement"], "rows of 3L over CPU + several1");
  const Json none = on("-sm none -dev several2,cpu");
  EXPECT_EQ(none["split_mode"], "none");
  EXPECT_EQ(none["backends"], "several2");
  const Json moved = on("-dev cpu -ot 'ffn_(up|gate)=several1' -ot ffn_down=several2");
  EXPECT_EQ(moved["override_tensor"], "ffn_(up|gate)=several1,ffn_down=several2");
  EXPECT_EQ(moved["placement"], "CPU(3L, matrices on several1 and several2)");
  EXPECT_THAT(moved["gpu_info"].get<std::string>(), HasSubstr("several1: "));
  ASSERT_EQ(moved["busy_shares"].size(), 3u);
  double sum = 0;
  for (const char* device : {"cpu", "several1", "several2"}) {
    EXPECT_GT(moved["busy_shares"][device], 0.0) << device;
    sum += moved["busy_shares"][device].get<double>();
  }
  EXPECT_LT(sum, 3.0);
  const Json limited = on("-dev several1,cpu --device-memory several1:1G");
  EXPECT_EQ(limited["device_memory"], "several1:1.0 GiB");
}

TEST_F(BenchCliTest, MeasuresFastNumericsWhereTheyAreAskedFor) {
  const Json fast = OnDevices(TRINE_PRODUCTS_PLUGIN, "--numerics fast --dispatch 2");
  EXPECT_EQ(fast["numerics"], "fast");
  EXPECT_EQ(fast["backends"], "cpu");
  EXPECT_EQ(fast["placement"], "CPU(3L, fast, prompts with products0)");
  EXPECT_EQ(OnDevices(TRINE_PRODUCTS_PLUGIN, "--dispatch 2")["placement"], "CPU(3L)");
  const Output table = Bench(
      "-p 6 -n 0 -t 1 -r 1 --numerics fast --dispatch 2 --plugin '" TRINE_PRODUCTS_PLUGIN "'");
  EXPECT_EQ(table.code, 0) << table.errors;
  EXPECT_THAT(Lines(table.text)[0], HasSubstr("| numerics |"));
  EXPECT_THAT(Lines(table.text)[2], HasSubstr("| fast     |"));
  EXPECT_THAT(table.text, HasSubstr("\nplacement: CPU(3L, fast, prompts with products0)\n"));
}

TEST_F(BenchCliTest, GivesOptionsToPlugins) {
  const Output output = Bench("-o json -p 6 -n 0 -t 1 -r 1 --plugin '" TRINE_EASY_PLUGIN
                              "' -dev cpu --plugin-option x=1 --plugin-option "
                              "accepts-unknown-option:y=2");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_EQ(Json::parse(output.text)[0]["plugin_options"], "x=1;accepts-unknown-option:y=2");
}

TEST_F(BenchCliTest, RefusesInOneLine) {
  ExpectRefused("-t 0", "--threads: '0' is no whole number from 1 to 1024", 2);
  ExpectRefused("-t 1,x", "'x' is neither a whole number nor a range", 2);
  ExpectRefused("-p 0 -n 0", "nothing is measured", 2);
  ExpectRefused("-p -5", "--n-prompt", 2);
  ExpectRefused("-pg 512", "'512' is no pair of lengths, such as 512,128", 2);
  ExpectRefused("-o xml", "--output: 'xml' is none of md, csv, json, jsonl", 2);
  ExpectRefused("-r 0", "--repetitions", 2);
  ExpectRefused("-ctk q2", "'q2' is none of f16, f32, bf16, q8_0", 2);
  ExpectRefused("-b 0", "--batch-size: '0' is no whole number from 1 to", 2);
  ExpectRefused("--delay -1", "--delay", 2);
  ExpectRefused("-m /no/such/model.gguf", "there is no such file", 1);
  ExpectRefused("-ts nowhere:1", "nowhere", 1);
  ExpectRefused("-dev nowhere", "nowhere", 1);
  ExpectRefused("-dev cpu -ts cpu:3", "--tensor-split does not go with --device", 2);
  ExpectRefused("-sm columns", "--split-mode", 2);
  ExpectRefused("-ot ffn_up", "is not REGEX=DEVICE", 2);
  ExpectRefused("-ot banana=cpu", "'banana' finds no tensor of the model", 1);
  for (const char* split : {"-sm row", "-ot ffn_up=cpu"}) {
    ExpectRefused(std::string("--branching ") + split,
                  "it goes with neither --split-mode row nor --override-tensor", 2);
  }
  ExpectRefused("-p 8,1 -n 4,90000000 -ctk f32 -ctv f32",
                "the longest test takes a context of 90000000: cpu has", 1);
}

}  // namespace
}  // namespace trine
