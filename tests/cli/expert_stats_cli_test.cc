// Tests --expert-stats from outside: the file, what --stats and plan say, and wrong files.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

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
  // Runs a command whose input stays open, and sends it the signal once it has written `begun`
  // bytes of text. Returns its exit code. A shell's background jobs ignore Ctrl-C, so the command
  // is not started as one.
  int Signalled(int number, std::vector<std::string> words, uintmax_t begun) {
    const std::string text = (folder_ / "text").string();
    fs::remove(text);
    int input[2];
    EXPECT_EQ(pipe2(input, O_CLOEXEC), 0);
    words.insert(words.begin(), TRINE_PROGRAM);
    for (const char* word : {"-m", model_.c_str(), "--expert-stats", stats_.c_str(), "-t", "1"}) {
      words.emplace_back(word);
    }
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      setenv("TRINE_FAULT", "cpu:slow=20@run", 1);
      dup2(input[0], STDIN_FILENO);
      if (std::freopen(text.c_str(), "w", stdout) == nullptr) _exit(99);
      for (const int one : {SIGINT, SIGTERM, SIGHUP}) signal(one, SIG_DFL);
      execv(argv[0], argv.data());
      _exit(99);
    }
    int status = 0;
    bool ended = false;
    while (!ended && (!fs::exists(text) || fs::file_size(text) < begun)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ended = waitpid(child, &status, WNOHANG) != 0;
    }
    EXPECT_FALSE(ended) << "it ended by itself";
    if (!ended) {
      kill(child, number);
      waitpid(child, &status, 0);
    }
    for (const int end : input) close(end);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
  const Output second = Generate("--logits-hash --hot-experts 2 -ts several2:100% --stats" +
                                 several_ + "--expert-stats " + stats_);
  EXPECT_EQ(second.code, 0) << second.errors;
  EXPECT_EQ(second.text, plain.text);
  EXPECT_EQ(Stats()["tokens"], 2 * tokens);
  EXPECT_THAT(second.errors, ContainsRegex("experts in slots of several2: [0-9.]+ % of what"));
  // A device that reads the file's pages has no slots.
  const Output third =
      Generate("--logits-hash --hot-experts 4 -ts several0:100% --stats" + several_);
  EXPECT_EQ(third.text, plain.text);
  EXPECT_THAT(third.errors,
              ContainsRegex("several0\\(3L, 4 of 8 experts in each of 3 without copies\\)"));
  EXPECT_THAT(third.errors,
              ContainsRegex("experts that several0 computed without copies: [0-9.]+ % of what"));
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

// A signal that ends a command does not lose the counts of the tokens that it has read.
TEST_F(ExpertStatsCliTest, SignalsKeepTheCounts) {
  const std::vector<std::string> generate = {"generate", "-p", "abc", "-n", "-1", "--ignore-eos"};
  const std::vector<std::string> chat = {"chat", "-p", "abc", "--chat-template", "{{ 'abc' }}"};
  int tokens = 0;
  for (const std::vector<std::string>& command : {generate, chat}) {
    for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
      SCOPED_TRACE(command[0] + ", signal " + std::to_string(signal));
      EXPECT_EQ(Signalled(signal, command, /*begun=*/12), 130);
      const int now = Stats().value("tokens", 0);
      EXPECT_GT(now, tokens);
      tokens = now;
    }
  }
}

// A conversation that waits for a message ends in order, too.
TEST_F(ExpertStatsCliTest, SignalsBetweenMessagesKeepTheCounts) {
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
    SCOPED_TRACE("signal " + std::to_string(signal));
    fs::remove(stats_);
    const std::vector<std::string> chat = {"chat",        "-p", "abc", "--chat-template",
                                           "{{ 'abc' }}", "-n", "3"};
    EXPECT_EQ(Signalled(signal, chat, /*begun=*/1), 130);
    EXPECT_GT(Stats().value("tokens", 0), 3);
  }
}

TEST_F(ExpertStatsCliTest, WrongFilesAreRefusedInASentence) {
  const std::string option = "--expert-stats " + stats_;
  const Output dense = Trine("generate -p a -n 1 " + option);
  EXPECT_EQ(dense.code, 1);
  EXPECT_EQ(dense.errors, "trine: --expert-stats: " + stats_ +
                              ": the model has no experts, so there is nothing to count\n");
  std::ofstream(stats_) << "{\"trine_expert_stats\": 7}";
  const Output format = Generate(option);
  EXPECT_EQ(format.code, 1);
  EXPECT_EQ(format.errors, "trine: --expert-stats: " + stats_ +
                               ": its format is not 1, the one that is known here\n");
  EXPECT_EQ(Stats()["trine_expert_stats"], 7) << "the file stays";
  EXPECT_EQ(Generate("--expert-stats ''").code, 2);
  EXPECT_EQ(Generate("--expert-stats " + folder_.string()).errors,
            "trine: --expert-stats: " + folder_.string() + ": it is no file\n");
}

TEST_F(ExpertStatsCliTest, PlanKnowsWhatSlotsGet) {
  ASSERT_EQ(Generate("--expert-stats " + stats_).code, 0);
  const std::string file = Stats().dump();
  const std::string plan = "plan -m " + model_ + " -t 1 -ts several2:100%" + several_;
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
  EXPECT_THAT(text.text, ContainsRegex("experts, 4 of 8 also on several2: [0-9]+ % of choices"));
  const Output in_place = Trine("plan -m " + model_ + " -t 1 -ts several0:100%" + several_ +
                                "--hot-experts 4 --expert-stats " + stats_);
  EXPECT_THAT(in_place.text, ContainsRegex("experts, 4 of 8 also on several0: 50 % of choices"));
  // Only the CPU's part has experts.
  const Output both = Trine(
      plan + " --json --hot-experts 4 -ot blk.0.attn_output=several1 --expert-stats " + stats_);
  std::map<std::string, bool> has_slots;
  const Json parts = Json::parse(both.text, nullptr, false)["segments"][0]["elsewhere"];
  for (const Json& part : parts) has_slots[part["device"]] = part.contains("slots");
  EXPECT_THAT(has_slots, UnorderedElementsAre(Pair("cpu", true), Pair("several1", false)));
  EXPECT_EQ(Stats().dump(), file) << "plan only reads it";
  const Output absent = Trine(plan + " --expert-stats " + stats_ + ".absent");
  EXPECT_EQ(absent.errors, "trine: --expert-stats: " + stats_ +
                               ".absent: there is no such file: generate, chat and serve make it "
                               "with the same option\n");
}

TEST_F(ExpertStatsCliTest, BenchOnlyReadsIt) {
  ASSERT_EQ(Generate("--expert-stats " + stats_).code, 0);
  const std::string file = Stats().dump();
  const Output bench = Trine("bench -m " + model_ + " -p 8 -n 4 -r 1 -t 1 --no-bandwidth " +
                             "--expert-stats " + stats_);
  EXPECT_EQ(bench.code, 0) << bench.errors;
  EXPECT_THAT(bench.text, Not(HasSubstr("experts in slots"))) << "nothing has slots";
  EXPECT_EQ(Stats().dump(), file);
}

TEST_F(ExpertStatsCliTest, BenchSaysWhatSlotsGot) {
  const std::string bench = "bench -m " + model_ + " -p 16 -n 4 -r 2 -t 1 --no-bandwidth" +
                            " -ts several2:100% --hot-experts 2" + several_;
  const Output table = Trine(bench);
  ASSERT_EQ(table.code, 0) << table.errors;
  EXPECT_THAT(table.text, HasSubstr("| hot experts |"));
  for (const char* test : {"pp16", "tg4"}) {
    EXPECT_THAT(table.text,
                ContainsRegex(std::string("experts in slots in ") + test +
                              ": [0-9.]+ % of [0-9]+ choices, [0-9]+ experts? moved there, [0-9]+ "
                              "MiB\n"));
  }
  const Output json = Trine(bench + " -o json");
  const Json results = Json::parse(json.text, nullptr, false);
  ASSERT_EQ(results.size(), 2u) << json.text << json.errors;
  for (const Json& result : results) {
    EXPECT_EQ(result["hot_experts"], "2");
    const int layers = 3, used = 3,
              tokens = result["n_prompt"].get<int>() + result["n_gen"].get<int>();
    EXPECT_EQ(result["expert_choices"], 2 * tokens * layers * used);
    EXPECT_GT(result["expert_slot_share"], 0);
    EXPECT_LT(result["expert_slot_share"], 1);
  }
  const Output in_place = Trine("bench -m " + model_ + " -p 0 -n 4 -r 1 -t 1 --no-bandwidth" +
                                " -ts several0:100% --hot-experts 2" + several_);
  EXPECT_THAT(in_place.text,
              ContainsRegex("experts without copies in tg4: [0-9.]+ % of [0-9]+ choices\n"));
}

// A wrong file is told of before the server listens.
TEST_F(ExpertStatsCliTest, ServeChecksTheFileBeforeItListens) {
  const auto refused = [&](const std::string& path, const std::string& message) {
    const Output output = Trine("serve --port 0 -m " + model_ + " --expert-stats " + path);
    EXPECT_EQ(output.code, 1);
    EXPECT_EQ(output.text, "") << "no address";
    EXPECT_THAT(output.errors, HasSubstr("trine: --expert-stats: " + path + ": " + message));
    EXPECT_THAT(output.errors, Not(HasSubstr("listening")));
  };
  std::ofstream(stats_) << "a diary";
  refused(stats_, "it is not JSON");
  refused(folder_.string(), "it is no file");
  refused("/nonexistent/folder/stats", "cannot be created");
  const std::string other = (folder_ / "other.gguf").string();
  ASSERT_EQ(Trine("make-model --like tiny-qwen3moe --seed 2 " + other).code, 0);
  fs::remove(stats_);
  ASSERT_EQ(Trine("generate -m " + other + " -p a -n 2 -t 1 --expert-stats " + stats_).code, 0);
  refused(stats_, "it counts the experts of another model");
  const Output dense = Trine("serve --port 0 --expert-stats " + stats_);
  EXPECT_EQ(dense.errors, "trine: --expert-stats: " + stats_ +
                              ": the model has no experts, so there is nothing to count\n");
}

}  // namespace
}  // namespace trine
