// Tests `trine head` from outside.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HeadCliTest : public CliFixture {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return Path(name);
  }
  // Every 14th pair of the examples: one for each goal.
  std::string Examples(const std::string& arguments, const std::string& name) {
    const Output output = Shell("'" MAKE_BRANCH_EXAMPLES "' " + arguments +
                                " | awk 'NR % 28 == 1 || NR % 28 == 2' > " + Path(name));
    EXPECT_EQ(output.code, 0) << output.errors;
    return Path(name);
  }
  json Json(const std::string& arguments) {
    const Output output = Trine(arguments + " --json");
    EXPECT_EQ(output.code, 0) << output.errors;
    json parsed = json::parse(output.text, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << output.text;
    return parsed;
  }
  void ExpectRefused(const std::string& arguments, int code, const std::string& part) {
    const Output output = Trine(arguments);
    EXPECT_EQ(output.code, code) << arguments << "\n" << output.errors;
    EXPECT_THAT(output.errors, StartsWith("trine: ")) << arguments;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_EQ(output.text, "") << arguments;
  }
  std::string Bytes(const std::string& path) const {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
};

TEST_F(HeadCliTest, TrainsTestsAndChooses) {
  const std::string train = Examples("train away", "train.jsonl");
  const std::string test = Examples("held-out away", "test.jsonl");
  const std::string base = "head train --chat --data " + train + " ";
  const json trained = Json(base + "-o " + Path("a.json") + " --hold-out 0.25 --seed 3 -t 1");
  EXPECT_EQ(trained["kind"], "label");
  EXPECT_EQ(trained["form"], "chat");
  EXPECT_EQ(trained["trained"]["examples"], 24);
  EXPECT_EQ(trained["held_out"]["examples"], 8);
  EXPECT_EQ(trained["held_out"]["swaps"]["pairs"], 4);
  EXPECT_EQ(trained["held_out"]["majority"], 0.5);
  EXPECT_GT(trained["cost"]["token_ms"].get<double>(), 0);
  EXPECT_GT(trained["cost"]["prompt_ms"].get<double>(), 0);
  // Two threads and passes of another size give the same file.
  const Output text = Trine(base + "-o " + Path("b.json") + " --hold-out 0.25 --seed 3 -t 2 -ub 9");
  EXPECT_EQ(text.code, 0) << text.errors;
  EXPECT_THAT(text.text, HasSubstr("held out: "));
  EXPECT_THAT(text.text, HasSubstr("kept in " + Path("b.json")));
  EXPECT_EQ(Bytes(Path("a.json")), Bytes(Path("b.json")));
  EXPECT_EQ(Leftovers(), 0);

  const json tested = Json("head test --head " + Path("a.json") + " --data " + test);
  EXPECT_EQ(tested["examples"], 24);
  EXPECT_GT(tested["accuracy"].get<double>(), 0.9);
  EXPECT_LT(tested["accuracy_95"][0].get<double>(), tested["accuracy"].get<double>());
  EXPECT_EQ(tested["confusion"].size(), 2u);

  const std::string choose = "head choose --head " + Path("a.json") +
                             " -p 'Goal: reach the north. Branch A: the traveller moves away from "
                             "the north. Branch B: the traveller moves toward the north. Which "
                             "branch is better?'";
  const json choice = Json(choose);
  EXPECT_EQ(choice["choice"], "B");
  EXPECT_NEAR(
      choice["probabilities"]["A"].get<double>() + choice["probabilities"]["B"].get<double>(), 1,
      1e-12);
  EXPECT_THAT(Trine(choose).text, StartsWith("B ("));
}

TEST_F(HeadCliTest, BranchesAreTextsOfTheirOwn) {
  const std::string train = Examples("train away branch", "train.jsonl");
  const std::string head = Path("branch.json");
  const json trained = Json("head train --hold-out 0 --data " + train + " -o " + head);
  EXPECT_EQ(trained["kind"], "branch");
  EXPECT_FALSE(trained.contains("held_out"));
  const std::string choose =
      "head choose --head " + head + " -p 'Goal: reach the north. Branch: the knight ' ";
  const std::string toward = "--branch 'moves toward the north. Is it a good branch?' ";
  const std::string away = "--branch 'moves away from the north. Is it a good branch?' ";
  EXPECT_EQ(Json(choose + toward + away)["choice"], "1");
  EXPECT_EQ(Json(choose + away + away + toward)["choice"], "3");
  ExpectRefused(choose, 1, "it takes a text for each");
  ExpectRefused(choose + away, 1, "between two or more");
}

TEST_F(HeadCliTest, BadInputGetsOneLine) {
  const std::string head = Path("h.json");
  const std::string train = "head train -o " + head + " --data ";
  ExpectRefused("head", 2, "head needs one of its commands: train, test, choose");
  ExpectRefused("head train", 2, "--data");
  ExpectRefused(train + Path("none"), 1, "none");
  ExpectRefused(train + Write("a", "{\"prompt\": \"p\", \"label\": \"A\"}\n\n{\"prompt\": 3}\n"), 1,
                "line 3: \"prompt\" is no text");
  ExpectRefused(train + Write("b", "{\"prompt\": \"p\", \"label\": \"A\"}\n"), 1,
                "nothing to tell apart");
  const std::string two = Write("c",
                                "{\"prompt\": \"p q r s t u v w\", \"label\": \"A\"}\n"
                                "{\"prompt\": \"q\", \"label\": \"B\"}\n");
  ExpectRefused(train + two + " -c 4", 1, "line 1: a text has");
  ExpectRefused(train + two + " --l2 0", 2, "--l2");
  ExpectRefused(train + two + " --hold-out 1", 2, "--hold-out");
  ExpectRefused(train + two + " --hold-out 0.5", 1, "all have one label");
  ExpectRefused(train + two + " --hold-out 0 --good C", 1, "no example has the label 'C'");
  EXPECT_FALSE(fs::exists(head));
  EXPECT_EQ(Trine(train + two + " --hold-out 0").code, 0);
  const std::string test = "head test --head " + head + " --data ";
  ExpectRefused(test + Write("d", "{\"prompt\": \"p\", \"label\": \"C\"}"), 1,
                "line 1: the head knows A and B");
  ExpectRefused(test + Write("e", "{\"branches\": [\"p\", \"q\"], \"best\": 0}"), 1, "kind");
  ExpectRefused("head test --head " + Path("none") + " --data " + two, 1, "no such file");
  json other = json::parse(Bytes(head));
  other["model"]["hash"] = "0123456789abcdef";
  ExpectRefused("head choose -p x --head " + Write("other", other.dump()), 1, "another model");
  other["weights"][7] = "x";
  ExpectRefused("head choose -p x --head " + Write("other", other.dump()), 1, "\"weights\"");
  ExpectRefused("head choose --head " + head, 1, "there is no text");
  ExpectRefused("head choose -p x --branch a --branch b --head " + head, 1, "it takes one text");
}

TEST_F(HeadCliTest, RerankedTextIsExactAndCostsAreTold) {
  const std::string train = Examples("train away branch", "train.jsonl");
  const std::string head = Path("branch.json");
  Json("head train --hold-out 0 --data " + train + " -o " + head);
  const std::string base = "generate -p 'Once upon a time' -n 12 --temp 0 --logits-hash ";
  const json plain = Json(base);
  EXPECT_FALSE(plain["timings"].contains("rerank_ms"));
  const json zero = Json(base + "--rerank-weight 0 --rerank-head " + head);
  for (const char* member : {"text", "tokens", "finish_reason", "logits_hash"}) {
    EXPECT_EQ(zero[member], plain[member]) << member;
  }
  EXPECT_EQ(zero["timings"]["reranked_tokens"], 12);
  EXPECT_EQ(zero["timings"]["rerank_candidates"], 12 * 8);
  EXPECT_GT(zero["timings"]["rerank_ms"].get<double>(), 0);

  const std::string reranked = base + "--rerank-weight 5 --rerank-top 4 --rerank-head " + head;
  const json one = Json(reranked + " -t 1"), two = Json(reranked + " -t 2 -ub 3 -c 64");
  EXPECT_NE(one["tokens"], plain["tokens"]);
  EXPECT_EQ(one["tokens"], two["tokens"]);
  EXPECT_EQ(one["logits_hash"], two["logits_hash"]);
  EXPECT_EQ(one["timings"]["rerank_candidates"], 12 * 4);
  const json several = Json(reranked + " --parallel 3 --stats");
  for (const json& sequence : several["sequences"]) EXPECT_EQ(sequence["tokens"], one["tokens"]);
  EXPECT_EQ(several["stats"]["rerank"]["tokens"], 12);
  const Output told = Trine(reranked + " --stats");
  EXPECT_EQ(told.code, 0) << told.errors;
  EXPECT_THAT(told.errors, HasSubstr("reranked: 12 tokens, with 4.0 candidates each"));
  const json full = Json("generate -p 'Once upon a time' -n -1 -c 8 --rerank-head " + head);
  EXPECT_EQ(full["finish_reason"], "context");

  const std::string refused = "generate -p x -n 4 ";
  ExpectRefused(refused + "--rerank-top 4", 2, "--rerank-head");
  ExpectRefused(refused + "--rerank-weight 1", 2, "--rerank-head");
  for (const char* wrong : {"--rerank-top 0", "--rerank-top 65", "--rerank-weight nan",
                            "--rerank-weight 1e7", "--rerank-weight x"}) {
    ExpectRefused(refused + "--rerank-head " + head + " " + wrong, 2, "--rerank-");
  }
  ExpectRefused(refused + "--rerank-head ''", 2, "--rerank-head");
  ExpectRefused(refused + "--capture " + Path("c") + " --rerank-head " + head, 2, "--capture");
  ExpectRefused(refused + "--parallel 1024 --rerank-head " + head, 1, "branches");
  ExpectRefused(refused + "--rerank-head " + Path("none"), 1, "no such file");
  json other = json::parse(Bytes(head));
  other["model"]["hash"] = "0123456789abcdef";
  ExpectRefused(refused + "--rerank-head " + Write("other", other.dump()), 1, "another model");
  other["trine_head"] = 1;
  ExpectRefused(refused + "--rerank-head " + Write("other", other.dump()), 1, "train it again");
}

}  // namespace
}  // namespace trine
