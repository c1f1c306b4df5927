// Tests what a generation can be asked for through libtrine.so: tokens with their
// log-probabilities, and a context that shifts.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/c_api_codes.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.hpp"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CApiGenerateTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("qwen2")).ToBytes());
    trine_engine_options options{};
    options.model = file_->path().c_str();
    options.context = 40;
    options.max_sequences = 2;
    options.threads = 1;
    auto engine = api::Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = std::make_unique<api::Engine>(std::move(*engine));
  }
  api::Session Open() {
    trine_session_options options{};
    options.flags = TRINE_SESSION_IGNORE_END;
    auto session = engine_->OpenSession(options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    EXPECT_TRUE(session->AppendText("the").ok());
    return std::move(*session);
  }

  std::unique_ptr<TempFile> file_;
  std::unique_ptr<api::Engine> engine_;
};

TEST_F(CApiGenerateTest, TokensComeWithTheirLogprobs) {
  api::Session session = Open();
  api::GenerateOptions options;
  options.max_tokens = 6;
  options.logprobs = 4;
  std::vector<int32_t> tokens;
  options.on_token = [&](const trine_token_event& event) {
    EXPECT_EQ(event.struct_size, sizeof(trine_token_event));
    EXPECT_LT(event.logprob, 0);
    EXPECT_EQ(event.n_top, 4u);
    for (size_t i = 1; i < event.n_top; ++i) {
      EXPECT_LE(event.top[i].logprob, event.top[i - 1].logprob);
    }
    for (size_t i = 0; i < event.n_top; ++i) {
      if (event.top[i].token == event.token) {
        EXPECT_EQ(event.top[i].logprob, event.logprob);
      }
    }
    tokens.push_back(event.token);
    return true;
  };
  const auto result = session.Generate(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->generated_tokens, 6);
  const std::vector<int32_t> all = session.tokens();
  EXPECT_EQ(tokens, std::vector<int32_t>(all.end() - 6, all.end()));
}

TEST_F(CApiGenerateTest, TokensAloneComeWithoutThem) {
  api::Session session = Open();
  api::GenerateOptions options;
  int calls = 0;
  options.on_token = [&](const trine_token_event& event) {
    EXPECT_EQ(event.logprob, 0);
    EXPECT_EQ(event.n_top, 0u);
    return ++calls < 3;
  };
  const auto result = session.Generate(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->finish, static_cast<uint32_t>(TRINE_FINISH_CALLER));
  EXPECT_EQ(calls, 3);
}

TEST_F(CApiGenerateTest, TheContextShiftsWhereItMay) {
  api::Session session = Open();
  const int32_t first = session.tokens()[0];
  api::GenerateOptions options;
  options.max_tokens = -1;
  auto result = session.Generate(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->finish, static_cast<uint32_t>(TRINE_FINISH_CONTEXT_FULL));
  EXPECT_EQ(result->context_shifts, 0);
  options.max_tokens = 50;
  options.context_shift = true;
  options.keep = 1;
  result = session.Generate(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->generated_tokens, 50);
  EXPECT_EQ(result->context_shifts, 3);
  EXPECT_EQ(session.tokens()[0], first);
  options.keep = -3;
  EXPECT_EQ(session.Generate(options).status().code(), kInvalidArgument);
}

TEST_F(CApiGenerateTest, ErasesTokens) {
  api::Session session = Open();
  ASSERT_TRUE(session.Truncate(0).ok());
  ASSERT_TRUE(session.Append({5, 6, 7, 8}).ok());
  ASSERT_TRUE(session.Evaluate().ok());
  ASSERT_TRUE(session.Erase(1, 3).ok());
  EXPECT_THAT(session.tokens(), ElementsAre(5, 8));
  EXPECT_EQ(session.logits(), nullptr);
  ASSERT_TRUE(session.Evaluate().ok());
  EXPECT_NE(session.logits(), nullptr);
  const api::Status outside = session.Erase(1, 3);
  EXPECT_EQ(outside.code(), kInvalidArgument);
  EXPECT_THAT(outside.message(), HasSubstr("no tokens 1 to 3"));
  EXPECT_EQ(trine_session_erase(nullptr, 0, 0, nullptr), kInvalidArgument);
}

TEST_F(CApiGenerateTest, GoesBackAndForks) {
  constexpr int32_t kNotFound = 5;
  api::Session session = Open();
  ASSERT_TRUE(session.Truncate(0).ok());
  ASSERT_TRUE(session.Append({5, 6, 7, 8}).ok());
  ASSERT_TRUE(session.Evaluate().ok());
  const auto row = [](const api::Session& s) {
    return std::vector<float>(s.logits(), s.logits() + 8);
  };
  const std::vector<float> before = row(session);
  const auto t = session.Checkpoint();
  ASSERT_TRUE(t.ok());
  auto fork = session.Fork(7);
  ASSERT_TRUE(fork.ok());
  EXPECT_EQ(row(*fork), before);
  ASSERT_TRUE(session.Append({9, 10}).ok());
  ASSERT_TRUE(session.Evaluate().ok());
  EXPECT_NE(row(session), before);
  ASSERT_TRUE(fork->Append({9, 10}).ok());
  ASSERT_TRUE(fork->Evaluate().ok());
  EXPECT_EQ(row(*fork), row(session));
  ASSERT_TRUE(session.Regress(*t).ok());
  EXPECT_THAT(session.tokens(), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(row(session), before);
  ASSERT_TRUE(session.Forget(*t).ok());
  EXPECT_EQ(session.Regress(*t).code(), kNotFound);
  EXPECT_EQ(fork->Regress(*t).code(), kNotFound) << "it has none of its origin's";
  trine_session* out = reinterpret_cast<trine_session*>(&session);
  EXPECT_EQ(trine_session_fork(nullptr, nullptr, &out, nullptr), kInvalidArgument);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(trine_session_fork(session.get(), nullptr, nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(trine_session_checkpoint(session.get(), nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(trine_session_regress(nullptr, 0, nullptr), kInvalidArgument);
  EXPECT_EQ(trine_session_forget(nullptr, 0, nullptr), kInvalidArgument);
}

TEST_F(CApiGenerateTest, OlderCallersAreTakenAsTheyAre) {
  // A program built before the members behind `user` has something else there.
  trine_generate_options options{};
  options.struct_size = offsetof(trine_generate_options, on_token);
  options.max_tokens = 2;
  options.on_token = [](void*, const trine_token_event*) -> int32_t {
    ADD_FAILURE();
    return 1;
  };
  options.keep = -99;
  options.n_logprobs = -99;
  trine_generate_result result{};
  result.struct_size = offsetof(trine_generate_result, context_shifts);
  result.context_shifts = 77;
  const api::Session session = Open();
  ASSERT_EQ(trine_generate(session.get(), &options, &result, nullptr), 0);
  EXPECT_EQ(result.generated_tokens, 2);
  EXPECT_EQ(result.context_shifts, 77);
}

TEST_F(CApiGenerateTest, AResultWithoutASizeIsRefusedBeforeAnythingIsDone) {
  api::Session session = Open();
  trine_generate_result result{};
  trine_failure why{};
  why.struct_size = sizeof(why);
  size_t before = 0, after = 0;
  trine_session_tokens(session.get(), nullptr, 0, &before);
  EXPECT_EQ(trine_generate(session.get(), nullptr, &result, &why), kInvalidArgument);
  EXPECT_THAT(why.message, HasSubstr("result"));
  trine_session_tokens(session.get(), nullptr, 0, &after);
  EXPECT_EQ(before, after);
}

TEST_F(CApiGenerateTest, NonsenseIsRefused) {
  const api::Session session = Open();
  const auto generate = [&](auto spoil) {
    trine_generate_options options{};
    options.struct_size = sizeof(options);
    options.max_tokens = 1;
    options.on_token = [](void*, const trine_token_event*) -> int32_t { return 0; };
    spoil(&options);
    return trine_generate(session.get(), &options, nullptr, nullptr);
  };
  EXPECT_EQ(generate([](auto* o) { o->flags = 1u << 9; }), kInvalidArgument);
  EXPECT_EQ(generate([](auto* o) { o->flags = TRINE_GENERATE_LOGPROBS, o->n_logprobs = -1; }),
            kInvalidArgument);
  EXPECT_EQ(generate([](auto* o) { o->flags = TRINE_GENERATE_LOGPROBS, o->n_logprobs = 1025; }),
            kInvalidArgument);
  EXPECT_EQ(generate([](auto* o) { o->flags = TRINE_GENERATE_LOGPROBS, o->on_token = nullptr; }),
            kInvalidArgument);
  EXPECT_EQ(generate([](auto* o) { o->flags = TRINE_GENERATE_CONTEXT_SHIFT, o->keep = -2; }),
            kInvalidArgument);
  EXPECT_EQ(generate([](auto* o) { o->flags = TRINE_GENERATE_LOGPROBS, o->n_logprobs = 1024; }), 0);
}

}  // namespace
}  // namespace trine
