// Tests log-probabilities of generated tokens: they come from the row that each was sampled from.
#include <cmath>
#include <memory>

#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

class LogprobsTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
    EngineOptions options = TestOptions(file_->path());
    options.threads = 1;
    engine_ = MustLoad(options);
  }
  std::unique_ptr<Session> Open() {
    SessionOptions options;
    options.ignore_eos = true;
    options.sampler.seed = 4;
    auto session = Session::Create(engine_.get(), options);
    EXPECT_TRUE((*session)->AppendText("the end", {}).ok());
    return *std::move(session);
  }

  std::unique_ptr<TempFile> file_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(LogprobsTest, AreThoseOfTheRowTheTokenCameFrom) {
  const auto session = Open();
  GenerateOptions options;
  options.max_tokens = 12;
  options.logprobs = 3;
  std::vector<int32_t> told;
  options.on_token = [&](const SampleResult& token) {
    told.push_back(token.token);
    EXPECT_EQ(token.top.size(), 3u);
    return true;
  };
  const size_t prompt = static_cast<size_t>(session->sequence().size());
  Generation g;
  ASSERT_TRUE(Generate(session.get(), options, &g).ok());
  EXPECT_EQ(told, g.tokens);
  ASSERT_EQ(g.logprobs.size(), 12u);
  const auto rows = AllLogits(engine_.get(), session->sequence().tokens());
  for (size_t i = 0; i < 12; ++i) {
    // Compare with an ordinary softmax of the row.
    const std::vector<float>& row = rows[prompt - 1 + i];
    double max = -1e30, sum = 0;
    for (const float x : row) max = std::max(max, static_cast<double>(x));
    for (const float x : row) sum += std::exp(static_cast<double>(x) - max);
    const auto logprob = [&](int32_t token) {
      return static_cast<double>(row[static_cast<size_t>(token)]) - max - std::log(sum);
    };
    const SampleResult& got = g.logprobs[i];
    EXPECT_EQ(got.token, g.tokens[i]);
    EXPECT_NEAR(got.logprob, logprob(got.token), 1e-5);
    ASSERT_EQ(got.top.size(), 3u);
    EXPECT_NEAR(got.top[0].logprob, -std::log(sum), 1e-5);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(got.top[k].logprob, logprob(got.top[k].token), 1e-5);
      EXPECT_LE(got.top[k].logprob, got.top[k == 0 ? 0 : k - 1].logprob);
    }
  }
}

TEST_F(LogprobsTest, AskingForThemChangesNoToken) {
  const auto plain = Open(), asked = Open();
  GenerateOptions options;
  options.max_tokens = 20;
  Generation a, b;
  ASSERT_TRUE(Generate(plain.get(), options, &a).ok());
  EXPECT_TRUE(a.logprobs.empty());
  options.logprobs = 0;
  ASSERT_TRUE(Generate(asked.get(), options, &b).ok());
  EXPECT_EQ(a.tokens, b.tokens);
  ASSERT_EQ(b.logprobs.size(), 20u);
  EXPECT_LT(b.logprobs[0].logprob, 0);
  EXPECT_TRUE(b.logprobs[0].top.empty());
  const auto untold = Open();
  options.collect = false;
  ASSERT_TRUE(Generate(untold.get(), options, &b).ok());
  EXPECT_TRUE(b.logprobs.empty());
}

TEST_F(LogprobsTest, TheCallerCanEndItAtAToken) {
  const auto session = Open();
  GenerateOptions options;
  options.max_tokens = 20;
  int calls = 0;
  std::string text;
  options.on_token = [&](const SampleResult& token) {
    EXPECT_GE(token.token, 0);
    return ++calls < 5;
  };
  options.on_text = [&](std::string_view piece) {
    text += piece;
    EXPECT_LT(calls, 5) << "the text of a token that was refused";
    return true;
  };
  Generation g;
  ASSERT_TRUE(Generate(session.get(), options, &g).ok());
  EXPECT_EQ(g.finish, FinishReason::kCaller);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(g.tokens.size(), 5u);
}

// The end-of-text token is not part of the answer, and is not reported.
TEST_F(LogprobsTest, TheEndOfTextIsNotTold) {
  SessionOptions session_options;
  const int32_t eos = engine_->tokenizer()->eos();
  session_options.sampler.logit_bias = {{eos, 1000.0f}};
  const auto session = Session::Create(engine_.get(), session_options);
  ASSERT_TRUE((*session)->AppendText("the", {}).ok());
  GenerateOptions options;
  options.logprobs = 1;
  options.on_token = [&](const SampleResult&) {
    ADD_FAILURE();
    return true;
  };
  Generation g;
  ASSERT_TRUE(Generate(session->get(), options, &g).ok());
  EXPECT_EQ(g.finish, FinishReason::kEndOfText);
  EXPECT_TRUE(g.logprobs.empty());
}

TEST_F(LogprobsTest, AbsurdCountsAreRefused) {
  const auto session = Open();
  Generation g;
  for (const int32_t n : {-2, kMaxLogprobs + 1}) {
    GenerateOptions options;
    options.logprobs = n;
    EXPECT_EQ(Generate(session.get(), options, &g).code(), absl::StatusCode::kInvalidArgument);
  }
  // Asking for more than the vocabulary gives all of it.
  GenerateOptions options;
  options.max_tokens = 1;
  options.logprobs = kMaxLogprobs;
  ASSERT_TRUE(Generate(session.get(), options, &g).ok());
  EXPECT_EQ(static_cast<int64_t>(g.logprobs[0].top.size()), TinyVocabularySize());
}

}  // namespace
}  // namespace trine
