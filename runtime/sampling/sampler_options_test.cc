#include "runtime/sampling/sampler_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(SamplerOptionsTest, DefaultsAreLlamaCppsAndValid) {
  const SamplerOptions options;
  EXPECT_TRUE(Validate(options, 32000).ok());
  EXPECT_EQ(StageOrderText(options.stages), "penalties;top_k;typ_p;top_p;min_p;temperature");
  EXPECT_EQ(options.temp, 0.8f);
  EXPECT_EQ(options.top_k, 40);
  EXPECT_EQ(options.top_p, 0.95f);
  EXPECT_EQ(options.min_p, 0.05f);
}

struct Absurd {
  const char* option;
  const char* found;
  void (*set)(SamplerOptions&);
};

TEST(SamplerOptionsTest, AbsurdValuesAreNamed) {
  const Absurd cases[] = {
      {"temp", "nan", [](SamplerOptions& o) { o.temp = std::nanf(""); }},
      {"temp", "-0.1", [](SamplerOptions& o) { o.temp = -0.1f; }},
      {"temp", "inf", [](SamplerOptions& o) { o.temp = kInf; }},
      {"top_k", "-1", [](SamplerOptions& o) { o.top_k = -1; }},
      {"top_p", "1.5", [](SamplerOptions& o) { o.top_p = 1.5f; }},
      {"top_p", "-0.5", [](SamplerOptions& o) { o.top_p = -0.5f; }},
      {"top_p", "nan", [](SamplerOptions& o) { o.top_p = std::nanf(""); }},
      {"min_p", "2", [](SamplerOptions& o) { o.min_p = 2.0f; }},
      {"typical_p", "-1", [](SamplerOptions& o) { o.typical_p = -1.0f; }},
      {"repeat_last_n", "-2", [](SamplerOptions& o) { o.repeat_last_n = -2; }},
      {"repeat_last_n", "2e+09", [](SamplerOptions& o) { o.repeat_last_n = 2000000000; }},
      {"repeat_penalty", "0", [](SamplerOptions& o) { o.repeat_penalty = 0.0f; }},
      {"frequency_penalty", "nan", [](SamplerOptions& o) { o.frequency_penalty = std::nanf(""); }},
      {"presence_penalty", "inf", [](SamplerOptions& o) { o.presence_penalty = kInf; }},
      {"mirostat", "1", [](SamplerOptions& o) { o.mirostat = 1; }},
      {"mirostat_tau", "-1", [](SamplerOptions& o) { o.mirostat_tau = -1.0f; }},
      {"mirostat_eta", "nan", [](SamplerOptions& o) { o.mirostat_eta = std::nanf(""); }},
      {"min_keep", "-4", [](SamplerOptions& o) { o.min_keep = -4; }},
      {"logit_bias", "token 100",
       [](SamplerOptions& o) {
         o.logit_bias = {{100, 1.0f}};
       }},
      {"logit_bias", "token -1",
       [](SamplerOptions& o) {
         o.logit_bias = {{-1, 1.0f}};
       }},
      {"logit_bias", "not a number",
       [](SamplerOptions& o) {
         o.logit_bias = {{1, std::nanf("")}};
       }},
      {"stage order", "top_k twice",
       [](SamplerOptions& o) {
         o.stages = {SamplerStage::kTopK, SamplerStage::kTopK};
       }},
      {"stage 0", "99", [](SamplerOptions& o) { o.stages = {static_cast<SamplerStage>(99)}; }},
  };
  for (const Absurd& c : cases) {
    SamplerOptions options;
    c.set(options);
    const absl::Status status = Validate(options, 100);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.option;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(c.option), HasSubstr(c.found), HasSubstr(": expected ")));
  }
}

TEST(SamplerOptionsTest, EdgesAreValid) {
  SamplerOptions options;
  options.temp = options.top_p = options.typical_p = 0.0f;
  options.min_p = 1.0f;
  options.top_k = std::numeric_limits<int32_t>::max();
  options.repeat_last_n = -1;
  options.logit_bias = {{0, -kInf}, {1, kInf}, {2, -1e30f}, {0, -kInf}};
  EXPECT_TRUE(Validate(options, 3).ok()) << Validate(options, 3);
}

TEST(SamplerOptionsTest, SomeTokenMustBeLeft) {
  SamplerOptions options;
  options.logit_bias = {{0, -kInf}, {1, -kInf}, {1, -kInf}};
  EXPECT_TRUE(Validate(options, 3).ok());
  EXPECT_THAT(std::string(Validate(options, 2).message()), HasSubstr("bans all 2 tokens"));
}

TEST(SamplerOptionsTest, VocabularyHasBounds) {
  EXPECT_FALSE(Validate({}, 0).ok());
  EXPECT_FALSE(Validate({}, -5).ok());
  EXPECT_TRUE(Validate({}, kMaxVocabSize).ok());
  EXPECT_FALSE(Validate({}, kMaxVocabSize + 1).ok());
}

TEST(StageOrderTest, ParsesNamesAndTheirOtherSpellings) {
  const auto stages = ParseStageOrder(" temp; typical_p ;Top-K;min_p;top_p;penalties");
  ASSERT_TRUE(stages.ok()) << stages.status();
  EXPECT_EQ(StageOrderText(*stages), "temperature;typ_p;top_k;min_p;top_p;penalties");
  EXPECT_TRUE(ParseStageOrder("")->empty());
  EXPECT_TRUE(ParseStageOrder("  ")->empty());
}

TEST(StageOrderTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(std::string(ParseStageOrder("top_k;xtc").status().message()),
              AllOf(HasSubstr("'xtc'"), HasSubstr("expected penalties, top_k")));
  EXPECT_FALSE(ParseStageOrder("top_k;;temp").ok());
  EXPECT_FALSE(ParseStageOrder("top_k,temp").ok());
  EXPECT_THAT(std::string(ParseStageOrder("temp;temperature").status().message()),
              HasSubstr("temperature twice"));
}

}  // namespace
}  // namespace trine
