// Tests `trine embed`, and what `trine generate` does at the end of its context, from outside.
#include <algorithm>
#include <cmath>
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

class EmbedCliTest : public CliFixture {
 protected:
  json Json(const std::string& arguments) {
    const Output output = Trine(arguments);
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
};

TEST_F(EmbedCliTest, EachLineIsAText) {
  std::ofstream(folder_ / "texts") << "The king had three sons.\r\nA dog barked.\nOnce.\n";
  const std::string file = (folder_ / "texts").string();
  const json list = Json("embed -f " + file);
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(list["data"][i]["object"], "embedding");
    EXPECT_EQ(list["data"][i]["index"], i);
    double squares = 0;
    for (const double x : list["data"][i]["embedding"]) squares += x * x;
    EXPECT_NEAR(squares, 1.0, 1e-5);
  }
  EXPECT_GT(list["usage"]["prompt_tokens"].get<int>(), 8);
  // Alone, split differently, in passes of another size: the same digits.
  const json alone = Json("embed -p 'A dog barked.' --embd-output-format array");
  EXPECT_EQ(alone[0], list["data"][1]["embedding"]);
  const json cut = Json("embed -p 'Once.##A dog barked.' --separator '##' -np 1 -ub 3 -t 1");
  EXPECT_EQ(cut["data"][1]["embedding"], list["data"][1]["embedding"]);
  EXPECT_EQ(cut["data"][0]["embedding"], list["data"][2]["embedding"]);
}

TEST_F(EmbedCliTest, FormatsSayTheSame) {
  const std::string texts =
      "embed -p \"$(printf 'The king.\\nThe queen.\\nA dog.')\" --pooling mean ";
  const json array = Json(texts + "--embd-output-format array");
  const json plus = Json(texts + "--embd-output-format json+");
  ASSERT_EQ(array.size(), 3u);
  ASSERT_EQ(plus["cosineSimilarity"].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(plus["data"][i]["embedding"], array[i]);
    for (int j = 0; j < 3; ++j) {
      double dot = 0;
      for (size_t k = 0; k < array[i].size(); ++k) {
        dot += array[i][k].get<double>() * array[j][k].get<double>();
      }
      EXPECT_NEAR(plus["cosineSimilarity"][i][j].get<double>(), dot, 1e-5);
    }
  }
  const Output raw = Trine(texts + "--embd-output-format raw");
  EXPECT_EQ(std::count(raw.text.begin(), raw.text.end(), '\n'), 3);
  EXPECT_EQ(std::stof(raw.text), array[0][0].get<float>());
}

TEST_F(EmbedCliTest, PoolingAndNormAreOptions) {
  const auto values = [&](const std::string& options) {
    return Json("embed -p 'A dog barked' --embd-output-format array " + options)[0];
  };
  const json none = values("--pooling none --embd-normalize -1");
  const json first = values("--pooling cls --embd-normalize -1");
  const json last = values("--pooling last --embd-normalize -1");
  EXPECT_EQ(none.front(), first);
  EXPECT_EQ(none.back(), last);
  EXPECT_EQ(values(""), values("--pooling last --embd-normalize 2"));
  double largest = 0, sum = 0;
  for (const double x : values("--embd-normalize 0")) largest = std::max(largest, std::abs(x));
  for (const double x : values("--embd-normalize 1")) sum += std::abs(x);
  EXPECT_EQ(largest, 32760);
  EXPECT_NEAR(sum, 1.0, 1e-5);
}

TEST_F(EmbedCliTest, BadInputGetsOneLine) {
  ExpectRefused("embed", 1, "there is no text");
  ExpectRefused("embed -p ''", 1, "text 1 is empty");
  ExpectRefused("embed -p \"$(printf 'a\\n\\nb')\"", 1, "text 2 is empty");
  ExpectRefused("embed -p \"$(printf 'a\\nb c d e f g h')\" -c 4", 1, "-c takes more");
  ExpectRefused("embed -p x --pooling rank", 2, "'rank' is no kind of pooling");
  ExpectRefused("embed -p x --pooling none --embd-output-format json+", 1, "see --pooling");
  ExpectRefused("embed -p x --embd-normalize -2", 2, "--embd-normalize");
  ExpectRefused("embed -p x --embd-normalize 33", 2, "--embd-normalize");
  ExpectRefused("embed -p x --embd-output-format xml", 2, "--embd-output-format");
  ExpectRefused("embed -p x --separator ''", 2, "it is empty");
}

TEST_F(EmbedCliTest, AFullContextShiftsWhereAsked) {
  const std::string base = "generate -p 'Once upon a time' -c 32 --ignore-eos --json --temp 0 ";
  const json ended = Json(base + "-n -1");
  EXPECT_EQ(ended["finish_reason"], "context");
  EXPECT_FALSE(ended.contains("context_shifts"));
  const json kept = Json(base + "-n 60 --context-shift --keep -1 --logits-hash");
  EXPECT_EQ(kept["finish_reason"], "length");
  EXPECT_EQ(kept["tokens"].size(), 60u);
  EXPECT_GE(kept["context_shifts"].get<int>(), 2);
  EXPECT_NE(Json(base + "-n 60 --context-shift")["tokens"], kept["tokens"]);
  const json again = Json(base + "-n 60 --context-shift --keep -1 --logits-hash -ub 5 -t 1");
  EXPECT_EQ(again["logits_hash"], kept["logits_hash"]);

  const Output full = Trine("generate -p 'Once upon a time' -c 16 -n 40 --ignore-eos");
  EXPECT_EQ(full.code, 0);
  EXPECT_THAT(full.errors, HasSubstr("the context of 16 is full: -c takes more, --context-shift"));
  const std::string prompt = "generate -p '" + std::string(200, '?') + "' ";
  ExpectRefused(prompt + "-c 32 --context-shift", 1, "the context holds 32: -c takes more");
  ExpectRefused("generate -p Once -c 32 --keep 3", 2, "--context-shift");
  ExpectRefused("generate -p 'Once upon a time' -c 5 --context-shift --keep -1", 1,
                "needs a context of");
}

TEST_F(EmbedCliTest, LogprobsComeWithTheJson) {
  const json result = Json("generate -p 'Once upon a time' -n 3 --temp 0 --json --logprobs 2");
  ASSERT_EQ(result["logprobs"].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const json& one = result["logprobs"][i];
    EXPECT_EQ(one["token"], result["tokens"][i]);
    ASSERT_EQ(one["top"].size(), 2u);
    // A greedily chosen token is the likeliest.
    EXPECT_EQ(one["top"][0]["token"], one["token"]);
    EXPECT_EQ(one["top"][0]["logprob"], one["logprob"]);
    EXPECT_GE(one["top"][0]["logprob"].get<double>(), one["top"][1]["logprob"].get<double>());
    EXPECT_LT(one["logprob"].get<double>(), 0);
    EXPECT_FALSE(one["text"].get<std::string>().empty());
  }
  ExpectRefused("generate -p x --logprobs 2", 2, "--json");
  ExpectRefused("generate -p x --json --logprobs -1", 2, "--logprobs");
}

}  // namespace
}  // namespace trine
