// Tests the commands that run a model from outside, with the shipped model.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ModelCliTest : public CliFixture {
 protected:
  json GenerateJson(const std::string& arguments, const std::string& environment = "") {
    const Output output = Trine("generate --json " + arguments, environment);
    EXPECT_EQ(output.code, 0) << output.errors;
    // A quick build says so where it runs kernels of another level than this processor's best.
    EXPECT_THAT(output.errors, AnyOf("", HasSubstr("fewer are faster"),
                                     HasSubstr("this build optimises the kernels of level")));
    json parsed = json::parse(output.text, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << output.text;
    return parsed;
  }
  // Expects one clear line, and the exit code of a failure.
  void ExpectRefused(const std::string& arguments, const std::string& part) {
    const Output output = Trine(arguments);
    EXPECT_THAT(output.code, AnyOf(1, 2)) << arguments << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_EQ(output.text, "") << arguments;
    EXPECT_THAT(output.errors, StartsWith("trine: ")) << arguments;
    EXPECT_EQ(std::count(output.errors.begin(), output.errors.end(), '\n'), 1) << arguments << "\n"
                                                                               << output.errors;
  }
};

TEST_F(ModelCliTest, TellsAStory) {
  const Output output = Trine("generate -p 'Once upon a time' -n 24 -s 1");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, StartsWith("Once upon a time"));
  EXPECT_GT(output.text.size(), 40u);
  EXPECT_EQ(output.errors, "");
  EXPECT_EQ(Trine("generate -p 'Once upon a time' -n 24 -s 1").text, output.text);
  EXPECT_NE(Trine("generate -p 'Once upon a time' -n 24 -s 2").text, output.text);
}

TEST_F(ModelCliTest, AnswersAQuestion) {
  const Output output = Trine("generate --chat -p 'What is the capital of France?' --temp 0");
  EXPECT_EQ(output.text, "The capital of France is Paris.\n");
}

TEST_F(ModelCliTest, JsonHoldsWhatItPromises) {
  const json result = GenerateJson("-p 'Once upon a time' -n 5 --temp 0 --logits-hash");
  EXPECT_EQ(result["tokens"].size(), 5u);
  EXPECT_EQ(result["finish_reason"], "length");
  EXPECT_FALSE(result["text"].get<std::string>().empty());
  for (const char* key : {"prompt_tokens", "prompt_ms", "generated_tokens", "generate_ms",
                          "load_ms", "prompt_per_second", "generate_per_second"}) {
    EXPECT_TRUE(result["timings"].contains(key)) << key;
  }
  EXPECT_THAT(result["logits_hash"].get<std::string>(), StartsWith("1-"));
  EXPECT_EQ(result["placement"][0]["device"], "cpu");
  EXPECT_FALSE(GenerateJson("-p a -n 1").contains("logits_hash"));
}

TEST_F(ModelCliTest, WithoutAPromptItBeginsAText) {
  const json result = GenerateJson("-n 5 --temp 0 --logits-hash");
  EXPECT_EQ(result["timings"]["prompt_tokens"], 1) << "BOS";
  EXPECT_EQ(result["tokens"].size(), 5u);
  EXPECT_EQ(GenerateJson("-p '<|endoftext|>' -n 5 --temp 0 --logits-hash")["logits_hash"],
            result["logits_hash"]);
}

TEST_F(ModelCliTest, TheHashIsTheSameHoweverItIsRun) {
  const std::string base =
      "-p 'There was once a king who had three sons' -n 6 --temp 0 --logits-hash ";
  const std::string hash = GenerateJson(base)["logits_hash"];
  for (const char* how :
       {"-t 1", "-t 4", "-b 1", "-ub 7", "-ts cpu:32", "-ts cpu:3,cpu:29", "-np 5", "--no-mmap",
        "--no-pack", "--pack-cache=false", "-dev CPU", "-c 64", "-fa on -sm layer"}) {
    EXPECT_EQ(GenerateJson(base + how)["logits_hash"], hash) << how;
  }
  EXPECT_EQ(GenerateJson(base, "TRINE_CPU_ISA=baseline")["logits_hash"], hash);
  EXPECT_NE(GenerateJson(base + "-ctk f32 -ctv f32")["logits_hash"], hash);
}

TEST_F(ModelCliTest, SeveralSequencesCountTheirSeedsUp) {
  const json together = GenerateJson("-p 'One day' -n 8 -s 10 -np 3");
  ASSERT_EQ(together["sequences"].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const json alone = GenerateJson("-p 'One day' -n 8 -s " + std::to_string(10 + i));
    EXPECT_EQ(together["sequences"][i]["tokens"], alone["tokens"]);
  }
  // Servers draw seeds of this length.
  EXPECT_EQ(GenerateJson("-p x -n 1 -s 9007199254740991")["seed"], 9007199254740991);
  EXPECT_EQ(Trine("generate -p x -n 1 -s 9223372036854775808").code, 2);
  const Output text = Trine("generate -p 'One day' -n 8 -s 10 -np 2");
  EXPECT_THAT(text.text, HasSubstr("[1]"));
  EXPECT_THAT(text.text, HasSubstr("[2]"));
}

TEST_F(ModelCliTest, ReadsPromptsFromFilesAndPipes) {
  std::ofstream(folder_ / "prompt") << "One day";
  const std::string file = (folder_ / "prompt").string();
  const std::string given = Trine("generate -n 4 -s 3 -p 'One day'").text;
  EXPECT_EQ(Trine("generate -n 4 -s 3 -f " + file).text, given);
  EXPECT_EQ(Shell("printf 'One day' | '" TRINE_PROGRAM "' generate -n 4 -s 3 -f -").text, given);
}

TEST_F(ModelCliTest, StopStringsAndPromptDisplay) {
  const json free = GenerateJson("-p 'Once upon a time' -n 30 --temp 0");
  const std::string text = free["text"];
  const std::string stop = text.substr(text.size() / 2, 4);
  const json stopped = GenerateJson("-p 'Once upon a time' -n 30 --temp 0 -r '" + stop + "'");
  EXPECT_EQ(stopped["finish_reason"], "stop");
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  EXPECT_THAT(Trine("generate -p 'Once upon a time' -n 4 --no-display-prompt").text,
              Not(StartsWith("Once")));
}

TEST_F(ModelCliTest, SpecialTokensInAPromptCount) {
  const json parsed = GenerateJson("-p '<|im_start|>' -n 1");
  EXPECT_EQ(parsed["timings"]["prompt_tokens"], 1);
  // In a message, control tokens are text.
  const json plain = GenerateJson("--chat -p 'x' -n 1");
  const json marked = GenerateJson("--chat -p 'x<|im_end|>' -n 1");
  EXPECT_GT(marked["timings"]["prompt_tokens"].get<int>(),
            plain["timings"]["prompt_tokens"].get<int>() + 1);
}

TEST_F(ModelCliTest, BytesThatAreNoUtf8AreRefused) {
  const Output output =
      Shell("printf 'a\\377\\376b\\000c' | '" TRINE_PROGRAM "' generate -n 3 -f -");
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.errors, HasSubstr("UTF-8"));
}

TEST_F(ModelCliTest, BadInputGetsOneLine) {
  std::ofstream(folder_ / "not-a-model") << "hello";
  std::ofstream(folder_ / "empty");
  std::ofstream(folder_ / "many") << std::string(20000, 'x') + " " + std::string(20000, 'y');
  const std::string folder = folder_.string();
  ExpectRefused("generate -p ''", "the prompt is empty");
  ExpectRefused("generate --chat", "there is no text");
  ExpectRefused("generate -p x -n 0", "0 tokens");
  ExpectRefused("generate -f " + folder + "/empty", "the prompt is empty");
  ExpectRefused("generate -f " + folder + "/absent", "absent");
  ExpectRefused("generate -f " + folder, folder);
  ExpectRefused("generate -f " + folder + "/many", "the context holds 2048");
  ExpectRefused("generate -p x -m " + folder + "/not-a-model", "not-a-model");
  ExpectRefused("generate -p x -m " + folder + "/empty", "empty");
  ExpectRefused("generate -p x -m " + folder + "/absent", "absent");
  ExpectRefused("generate -p x -m " + folder, folder);
  ExpectRefused("generate -p x -n -5", "-n");
  ExpectRefused("generate -p x -n banana", "banana");
  ExpectRefused("generate -p x -c -1", "ctx-size");
  ExpectRefused("generate -p x -t 100000", "threads");
  ExpectRefused("generate -p x -b 0", "batch-size");
  ExpectRefused("generate -p x -np 0", "parallel");
  ExpectRefused("generate -p x --temp -1", "temp");
  ExpectRefused("generate -p x --temp nan", "temp");
  ExpectRefused("generate -p x --top-p 7", "--top-p is 7: expected 0 to 1");
  ExpectRefused("generate -p x --mirostat 1", "mirostat");
  ExpectRefused("generate -p x --samplers 'top_k;banana'", "banana");
  ExpectRefused("generate -p x --mirostat-lr 1.5", "--mirostat-lr is 1.5: expected 0 to 1");
  ExpectRefused("generate -p x --typical 1.5", "--typical is 1.5: expected 0 to 1");
  ExpectRefused("generate -p x -l 12", "--logit-bias: '12'");
  ExpectRefused("generate -p x -l 99999+1", "99999");
  ExpectRefused("generate -p x -r ''", "stop string");
  ExpectRefused("generate -p x -ctk q2", "--cache-type-k: 'q2' is none of f16, f32, bf16, q8_0");
  ExpectRefused("generate -p x -ts cpu:4,dgpu:28", "dgpu");
  ExpectRefused("generate -p x -ts cpu:4", "add up to 32");
  ExpectRefused("generate -p x -ts ''", "tensor-split");
  ExpectRefused("generate -p x -dev Vulkan0", "Vulkan0");
  ExpectRefused("generate -p x -c 500000000", "KV cache");
  ExpectRefused("generate -p x -m ''", "it is empty");
  ExpectRefused("show model ''", "it is empty");
  ExpectRefused("tokenize -p x -m ''", "it is empty");
  ExpectRefused("generate -p x -m \"$(printf 'a\\nb\\033')\"", "a\\x0ab\\x1b");
  ExpectRefused("generate -p x -dev cpu -ngl 3", "--device does not go with --gpu-layers");
  ExpectRefused("generate -p x --banana", "--banana");
  ExpectRefused("generate -p x -banana", "-banana");
  ExpectRefused("generate -p x -fa perhaps", "flash-attn");
  ExpectRefused("generate -p x -sm columns", "split-mode");
  ExpectRefused("generate -p x --dispatch on",
                "'on' is none of auto, prompts, off and a number of tokens");
  ExpectRefused("generate -p x -sm row -ngl 3", "goes with the split mode layer");
  ExpectRefused("generate -p x -sm row -ts cpu:1,dgpu:1", "dgpu");
  ExpectRefused("generate -p x -sm row -ts 3,1", "2 proportions for 0 GPUs");
  ExpectRefused("generate -p x -ot ffn_up", "is not REGEX=DEVICE");
  ExpectRefused("generate -p x -ot 'ffn_(up=cpu'", "is wrong at offset");
  ExpectRefused("generate -p x -ot banana=cpu", "'banana' finds no tensor of the model");
  ExpectRefused("generate -p x -ot norm=cpu", "only tensors that stay with their layer");
  ExpectRefused("generate -p x -ot ffn_up=dgpu", "dgpu");
  ExpectRefused("generate -p x --pack-cache=", "--pack-cache: the name of the folder is empty");
  ExpectRefused("generate -p x -sys hello", "--chat");
  ExpectRefused("perplexity -p 'too short'", "one context takes 512");
  ExpectRefused("perplexity", "there is no text");
}

// For any model, and before the model is looked for.
TEST_F(ModelCliTest, OptionsThatCantBeReadExitWithTwo) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    ExpectRefused("generate -m /nowhere -p x " + arguments, part);
    EXPECT_EQ(Trine("generate -m /nowhere -p x " + arguments).code, 2) << arguments;
  };
  refused("-ts ''", "tensor-split");
  refused("-ts igpu:-1", "--tensor-split: 'igpu:-1' has a wrong amount, '-1': write whole layers");
  refused("-ts igpu:1e1,cpu:22", "has a wrong amount, '1e1'");
  refused("-ts cpu:", "'cpu:' has no amount");
  refused("-ts cpu:40%,igpu:50%", "add up to 90 %");
  refused("-ts cpu:32 -dev cpu", "does not go with");
  refused("-dev cpu:3,igpu", "is no device; --tensor-split takes");
  refused("-n 3 -n 4", "-n (--n-predict) is given twice");
  refused("-ts cpu:1 -ts cpu:2", "-ts (--tensor-split) is given twice");
  EXPECT_EQ(Trine("bench -ts cpu:x").code, 2);
}

TEST_F(ModelCliTest, AForcedLevelThatIsNotThereIsAnError) {
  const Output output = Trine("generate -p x -n 1", "TRINE_CPU_ISA=banana");
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.errors, HasSubstr("banana"));
}

TEST_F(ModelCliTest, WhatIsNotUsedIsSaid) {
  const Output plugin = Trine("generate -p Once -n 1 --plugin /nonexistent/libtrine-backend-x.so");
  EXPECT_EQ(plugin.code, 0);
  EXPECT_THAT(plugin.errors, HasSubstr("/nonexistent/libtrine-backend-x.so is not used"));
  std::ofstream(folder_ / "libtrine-backend-bad.so") << "no plugin at all";
  const std::string bad = "--plugin " + (folder_ / "libtrine-backend-bad.so").string();
  ExpectRefused("generate -p x -dev npu7 " + bad, "; bad: ");
  for (const char* limit : {"abc", "0"}) {
    const Output timed =
        Trine("generate -p Once -n 1", std::string("TRINE_PROBE_TIMEOUT_MS=") + limit);
    EXPECT_EQ(timed.code, 0);
    EXPECT_THAT(timed.errors, HasSubstr(std::string("TRINE_PROBE_TIMEOUT_MS=") + limit + " is no"));
    EXPECT_THAT(timed.errors, HasSubstr("is used"));
  }
  EXPECT_THAT(Trine("generate -p Once -n 1 -t 300").errors, HasSubstr("fewer are faster"));
  EXPECT_THAT(Trine("generate -p Once -n 5 -c 1").errors, HasSubstr("the context of 1 is full"));
}

TEST_F(ModelCliTest, LaneThreadsAreChecked) {
  EXPECT_EQ(Trine("generate -p x -n 1", "TRINE_CPU_LANE_THREADS=0").code, 1);
  EXPECT_EQ(Trine("generate -p x -n 1", "TRINE_CPU_LANE_THREADS=2").code, 0);
}

TEST_F(ModelCliTest, TheTeamIsChosenAndNamed) {
  const std::string generate = "generate -p Once -n 4 --temp 0 -t 2 --json --stats --logits-hash ";
  const auto run = [&](const std::string& arguments, const std::string& environment) {
    const Output output = Trine(generate + arguments, environment);
    EXPECT_EQ(output.code, 0) << output.errors;
    return json::parse(output.text, nullptr, false);
  };
  const json own = run("--team own", "TRINE_TEAM=nonsense");
  EXPECT_EQ(own["stats"]["team"], json({{"name", "own"}, {"threads", 2}}));
  EXPECT_THAT(Trine("generate -p Once -n 1 -t 2 --stats").errors,
              HasSubstr("threads on the CPU: 2, of Trine's own"));
  EXPECT_EQ(Trine(generate + "--team theirs").code, 2);
  const Output wrong = Trine(generate, "TRINE_TEAM=theirs");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("TRINE_TEAM: 'theirs' is no team"));
  const Output tried = Trine(generate + "--team openmp");
  if (tried.errors.find("this build has no OpenMP") != std::string::npos) {
    EXPECT_EQ(tried.code, 1);
    GTEST_SKIP() << tried.errors;
  }
  for (const json& openmp : {run("--team openmp", ""), run("", "TRINE_TEAM=openmp")}) {
    EXPECT_EQ(openmp["stats"]["team"], json({{"name", "openmp"}, {"threads", 2}}));
    EXPECT_EQ(openmp["logits_hash"], own["logits_hash"]);
  }
  // OpenMP's own variables count.
  const std::string all = "generate -p Once -n 1 --team openmp --stats";
  EXPECT_THAT(Trine(all, "OMP_NUM_THREADS=3").errors,
              HasSubstr("threads on the CPU: 3, of OpenMP"));
  const Output limited = Trine(all + " -t 4", "OMP_THREAD_LIMIT=3");
  EXPECT_EQ(limited.code, 1);
  EXPECT_THAT(limited.errors, HasSubstr("OpenMP gives 3 of 4 threads"));
  EXPECT_THAT(Trine(all, "OMP_NUM_THREADS=2 OMP_PLACES=threads OMP_PROC_BIND=close").errors,
              HasSubstr("threads on the CPU: 2, of OpenMP"));
}

TEST_F(ModelCliTest, InterruptingEndsCleanly) {
  const Output output = Shell("timeout -s INT 2 '" TRINE_PROGRAM
                              "' generate -p 'Once upon a time' -n -1 --ignore-eos -c 0 --json");
  // Finished or interrupted, the JSON is complete.
  EXPECT_TRUE(json::parse(output.text, nullptr, false).is_object()) << output.text;
  EXPECT_THAT(output.code, AnyOf(0, 124, 130));
}

TEST_F(ModelCliTest, AnInterruptThatIsIgnoredStaysSo) {
  const std::string text = (folder_ / "text").string();
  // A shell that is not interactive starts background jobs like this.
  const Output output =
      Shell("( '" TRINE_PROGRAM "' generate -p x -n 64 --ignore-eos --no-display-prompt >" + text +
            " & pid=$!; while [ ! -s " + text +
            " ] && kill -0 $pid; do sleep 0.02; done; kill -INT $pid; wait $pid )");
  EXPECT_EQ(output.code, 0) << output.errors;
}

// Returns the program's peak memory in KiB; -1 when it failed.
long PeakMemoryKib(const std::vector<const char*>& arguments) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(127);
    std::vector<char*> argv = {const_cast<char*>(TRINE_PROGRAM)};
    for (const char* argument : arguments) argv.push_back(const_cast<char*>(argument));
    argv.push_back(nullptr);
    execv(TRINE_PROGRAM, argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (wait4(pid, &status, 0, &usage) != pid || status != 0) return -1;
  return usage.ru_maxrss;
}

TEST_F(ModelCliTest, MemoryStaysNearTheFile) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
  const long peak_kib = PeakMemoryKib(
      {"generate", "-p", "Once upon a time", "-n", "64", "--ignore-eos", "-c", "2048"});
  ASSERT_GT(peak_kib, 0);
  const long file_kib = static_cast<long>(fs::file_size(TRINE_SHIPPED_MODEL)) / 1024;
  const long kv_kib = 2048L * 32 * 2 * 2 * 64 * 2 / 1024;
  EXPECT_LE(peak_kib, file_kib + kv_kib + 150 * 1024);
  std::printf("  peak %ld KiB: the file has %ld, the cache %ld\n", peak_kib, file_kib, kv_kib);
}

TEST_F(ModelCliTest, ShowsTheModel) {
  const Output text = Trine("show model");
  EXPECT_EQ(text.code, 0) << text.errors;
  EXPECT_THAT(text.text, HasSubstr("qwen2"));
  EXPECT_THAT(text.text, HasSubstr("q8_0"));
  const Output output = Trine("show model --json");
  EXPECT_TRUE(json::parse(output.text, nullptr, false).is_object()) << output.text;
}

TEST_F(ModelCliTest, Tokenizes) {
  const Output output = Trine("tokenize --ids -p 'Once upon a time'");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_FALSE(output.text.empty());
}

TEST_F(ModelCliTest, MeasuresPerplexity) {
  std::ofstream(folder_ / "text") << std::string(
      "Once upon a time there was a king who had three sons. The eldest was wise, and the second "
      "was brave, and the youngest was kind. One day the king called them to him and said: my "
      "sons, I am old, and I wish to know which of you shall have the kingdom when I am dead.\n");
  const std::string file = (folder_ / "text").string();
  const Output output = Trine("perplexity -c 32 --json -f " + file);
  ASSERT_EQ(output.code, 0) << output.errors;
  const json result = json::parse(output.text);
  EXPECT_GT(result["perplexity"].get<double>(), 2);
  EXPECT_LT(result["perplexity"].get<double>(), 200);
  EXPECT_EQ(result["contexts"], 2);
  EXPECT_EQ(result["tokens_scored"], 2 * 15);
  EXPECT_THAT(Trine("perplexity -c 32 -f " + file).text, HasSubstr("PPL = "));
}

TEST_F(ModelCliTest, HoldsAnswersToAForm) {
  const Output grammar =
      Trine("generate -p 'Is it so? ' --no-display-prompt --grammar 'root ::= \"yes\" | \"no\"'");
  EXPECT_EQ(grammar.code, 0) << grammar.errors;
  EXPECT_TRUE(grammar.text == "yes\n" || grammar.text == "no\n") << grammar.text;

  std::ofstream(folder_ / "schema")
      << R"({"type":"array","items":{"type":"boolean"},"minItems":2})";
  const Output schema =
      Trine("generate -p 'List: ' -n 12 --json -jf " + (folder_ / "schema").string());
  ASSERT_EQ(schema.code, 0) << schema.errors;
  const json result = json::parse(schema.text);
  EXPECT_EQ(result["complete"], true);
  EXPECT_GE(json::parse(result["text"].get<std::string>()).size(), 2u);

  const Output cut = Trine("generate -p 'Say: ' -n 1 -j '{\"const\":\"a long and lonely road\"}'");
  EXPECT_EQ(cut.code, 0);
  EXPECT_THAT(cut.errors, HasSubstr("the answer was cut"));
  const Output bad = Trine("generate -p x --grammar 'root ::= \"a'");
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.errors, HasSubstr("trine: grammar, line 1, column 10"));
  EXPECT_EQ(Trine("generate -p x --grammar x -j '{}'").code, 2);
}

}  // namespace
}  // namespace trine
