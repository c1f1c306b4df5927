// Tests sessions from outside: what generation does at its edges.
#include <atomic>
#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
    EngineOptions options = TestOptions(file_->path());
    options.context = 128;
    options.max_sequences = 2;
    options.threads = 1;
    engine_ = MustLoad(options);
    ASSERT_NE(engine_, nullptr);
  }

  std::unique_ptr<Session> Open(const SessionOptions& options = Greedy()) {
    auto session = Session::Create(engine_.get(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  static SessionOptions Greedy() {
    SessionOptions options;
    options.sampler.temp = 0;
    options.ignore_eos = true;
    return options;
  }
  static GenerateOptions Tokens(int64_t n) {
    GenerateOptions options;
    options.max_tokens = n;
    return options;
  }
  Generation Run(Session* session, const GenerateOptions& options) {
    Generation result;
    const absl::Status status = Generate(session, options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }

  std::unique_ptr<TempFile> file_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(SessionTest, GeneratesAsManyTokensAsAskedFor) {
  const auto session = Open();
  ASSERT_TRUE(session->AppendText("in the end", {}).ok());
  const int64_t prompt = session->sequence().size();
  const Generation g = Run(session.get(), Tokens(9));
  EXPECT_EQ(g.tokens.size(), 9u);
  EXPECT_EQ(g.finish, FinishReason::kLength);
  EXPECT_EQ(g.prompt_tokens, prompt);
  EXPECT_EQ(session->sequence().size(), prompt + 9);
}

TEST_F(SessionTest, GoingOnGivesTheSameAsOneLongRun) {
  const auto whole = Open();
  const auto parts = Open();
  for (Session* s : {whole.get(), parts.get()}) ASSERT_TRUE(s->AppendText("and", {}).ok());
  const Generation all = Run(whole.get(), Tokens(10));
  Generation first = Run(parts.get(), Tokens(4));
  const Generation second = Run(parts.get(), Tokens(6));
  first.tokens.insert(first.tokens.end(), second.tokens.begin(), second.tokens.end());
  EXPECT_EQ(first.tokens, all.tokens);
}

TEST_F(SessionTest, NothingAskedForReadsThePrompt) {
  const auto session = Open();
  ASSERT_TRUE(session->AppendText("and", {}).ok());
  const Generation g = Run(session.get(), Tokens(0));
  EXPECT_TRUE(g.tokens.empty());
  EXPECT_EQ(g.finish, FinishReason::kLength);
  EXPECT_EQ(session->sequence().pending(), 0);
  EXPECT_FALSE(session->logits().empty());
}

TEST_F(SessionTest, AnEmptyPromptIsAnError) {
  const auto session = Open();
  Generation g;
  const absl::Status status = Generate(session.get(), Tokens(4), &g);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("prompt is empty"));
  EXPECT_EQ(session->Sample().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Generate(session.get(), Tokens(-2), &g).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionTest, APromptBeyondTheContextIsRefusedWhole) {
  const auto session = Open();
  const std::vector<int32_t> tokens(129, 65);
  const absl::Status status = session->Append(tokens);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("129 tokens, the context holds 128"));
  EXPECT_EQ(session->sequence().size(), 0);
}

TEST_F(SessionTest, TokensOutsideTheVocabularyAreRefused) {
  const auto session = Open();
  const int32_t bad[] = {65, 100000};
  EXPECT_EQ(session->Append(bad).code(), absl::StatusCode::kInvalidArgument);
  const int32_t negative[] = {-1};
  EXPECT_EQ(session->Append(negative).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->sequence().size(), 0);
}

TEST_F(SessionTest, AFullContextEndsTheGeneration) {
  const auto session = Open();
  ASSERT_TRUE(session->Append(std::vector<int32_t>(120, 65)).ok());
  const Generation g = Run(session.get(), Tokens(-1));
  EXPECT_EQ(g.finish, FinishReason::kContextFull);
  EXPECT_EQ(session->sequence().size(), 128);
  EXPECT_EQ(g.tokens.size(), 8u);
}

TEST_F(SessionTest, StopsAtAStringThatSpansTokens) {
  const auto session = Open();
  ASSERT_TRUE(session->AppendText("the", {}).ok());
  const Generation all = Run(session.get(), Tokens(40));
  // Whatever the model says, part of it is the stop string.
  const size_t at = all.text.size() / 2;
  ASSERT_GT(at, 4u);
  SessionOptions options = Greedy();
  options.stop = {all.text.substr(at, 3)};
  const auto stopping = Open(options);
  ASSERT_TRUE(stopping->AppendText("the", {}).ok());
  std::string streamed;
  GenerateOptions generate = Tokens(40);
  generate.on_text = [&](std::string_view text) {
    streamed += text;
    return true;
  };
  const Generation g = Run(stopping.get(), generate);
  EXPECT_EQ(g.finish, FinishReason::kStopString);
  EXPECT_EQ(g.text, all.text.substr(0, all.text.find(options.stop[0])));
  EXPECT_EQ(streamed, g.text);
}

TEST_F(SessionTest, TheCallerCanEndIt) {
  const auto session = Open();
  ASSERT_TRUE(session->AppendText("the", {}).ok());
  int calls = 0;
  GenerateOptions options = Tokens(-1);
  options.on_text = [&](std::string_view) { return ++calls < 3; };
  EXPECT_EQ(Run(session.get(), options).finish, FinishReason::kCaller);
  EXPECT_EQ(calls, 3);
}

TEST_F(SessionTest, CancelFromAnotherThreadAndGoOn) {
  const auto session = Open();
  ASSERT_TRUE(session->AppendText("the", {}).ok());
  std::atomic<bool> started{false};
  GenerateOptions options = Tokens(-1);
  options.on_text = [&](std::string_view) {
    started = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  };
  std::thread canceller([&] {
    while (!started) std::this_thread::yield();
    session->Cancel();
  });
  const Generation g = Run(session.get(), options);
  canceller.join();
  EXPECT_EQ(g.finish, FinishReason::kCancelled);
  session->Truncate(2);
  EXPECT_EQ(Run(session.get(), Tokens(3)).finish, FinishReason::kLength);
}

TEST_F(SessionTest, ACancelBeforeTheCallIsHeeded) {
  const auto session = Open();
  ASSERT_TRUE(session->AppendText("the", {}).ok());
  session->Cancel();
  const Generation cancelled = Run(session.get(), Tokens(5));
  EXPECT_EQ(cancelled.finish, FinishReason::kCancelled);
  EXPECT_TRUE(cancelled.tokens.empty());
  EXPECT_EQ(Run(session.get(), Tokens(5)).finish, FinishReason::kLength);
  session->Cancel();
  EXPECT_EQ(session->Evaluate().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(session->Evaluate().ok());
}

TEST_F(SessionTest, BackToThePromptAndOnAgain) {
  const auto session = Open();
  ASSERT_TRUE(session->AppendText("and in the end", {}).ok());
  const int64_t prompt = session->sequence().size();
  const std::vector<int32_t> first = Run(session.get(), Tokens(9)).tokens;
  session->Truncate(prompt);
  EXPECT_EQ(Run(session.get(), Tokens(9)).tokens, first);
  session->Truncate(prompt + 4);
  EXPECT_EQ(Run(session.get(), Tokens(5)).tokens,
            std::vector<int32_t>(first.begin() + 4, first.end()));
}

TEST_F(SessionTest, OneCancelledPromptLeavesTheOthersRead) {
  const auto a = Open();
  const auto b = Open();
  ASSERT_TRUE(a->AppendText("the", {}).ok());
  ASSERT_TRUE(b->AppendText("and in", {}).ok());
  a->Cancel();
  Session* const both[] = {a.get(), b.get()};
  const GenerateOptions options[] = {Tokens(0), Tokens(0)};
  Generation results[2];
  ASSERT_TRUE(GenerateTogether(both, options, results).ok());
  EXPECT_EQ(results[0].finish, FinishReason::kCancelled);
  EXPECT_EQ(results[1].finish, FinishReason::kLength);
  EXPECT_FALSE(b->logits().empty());
}

// In rounds of one token, a character of several tokens and a stop string across them come out as
// in one round.
TEST_F(SessionTest, RoundsThatFollowEachOtherShowTheSameText) {
  SessionOptions options = Greedy();
  options.sampler.temp = 1;
  options.sampler.top_k = 0;
  options.sampler.seed = 3;
  const auto whole = Open(options);
  ASSERT_TRUE(whole->AppendText("the", {}).ok());
  const std::string text = Run(whole.get(), Tokens(60)).text;
  const auto rounds = Open(options);
  ASSERT_TRUE(rounds->AppendText("the", {}).ok());
  std::string shown;
  for (int i = 0; i < 60; ++i) {
    GenerateOptions one = Tokens(1);
    one.more_follows = i < 59;
    shown += Run(rounds.get(), one).text;
  }
  EXPECT_EQ(shown, text);

  options.stop = {text.substr(text.size() / 2, 5)};
  const auto stopping = Open(options);
  ASSERT_TRUE(stopping->AppendText("the", {}).ok());
  shown.clear();
  FinishReason finish = FinishReason::kNone;
  for (int i = 0; i < 60 && finish != FinishReason::kStopString; ++i) {
    GenerateOptions one = Tokens(1);
    one.more_follows = true;
    const Generation g = Run(stopping.get(), one);
    shown += g.text;
    finish = g.finish;
  }
  EXPECT_EQ(finish, FinishReason::kStopString);
  EXPECT_EQ(shown, text.substr(0, text.find(options.stop[0])));
}

TEST_F(SessionTest, ALongPromptAndShortOnesShareTheWay) {
  // More sequences than a pass has places: all are served, the cancelled one at once.
  EngineOptions engine_options = TestOptions(file_->path());
  engine_options.max_sequences = 2;
  engine_options.batch_tokens = 8;
  const auto engine = MustLoad(engine_options);
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 6; ++i) {
    sequences.push_back(engine->NewSequence());
    ASSERT_TRUE(sequences.back()->Append(std::vector<int32_t>(i == 0 ? 60 : 1, 65 + i)).ok());
  }
  for (auto& sequence : sequences) {
    threads.emplace_back([&] {
      Sequence* const one[] = {sequence.get()};
      if (engine->Evaluate(one).ok()) ++done;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(done, 6);
}

TEST_F(SessionTest, ACancelledEvaluationKeepsWhatIsDone) {
  EngineOptions options = TestOptions(file_->path());
  options.batch_tokens = 4;
  const auto engine = MustLoad(options);
  auto sequence = engine->NewSequence();
  ASSERT_TRUE(sequence->Append(std::vector<int32_t>(40, 66)).ok());
  sequence->set_progress([&](int64_t done, int64_t) {
    if (done >= 12) sequence->Cancel();
  });
  Sequence* const one[] = {sequence.get()};
  EXPECT_EQ(engine->Evaluate(one).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(sequence->evaluated(), 12);
  sequence->ClearCancel();
  sequence->set_progress(nullptr);
  EXPECT_TRUE(engine->Evaluate(one).ok());
  EXPECT_EQ(sequence->pending(), 0);
}

TEST_F(SessionTest, MoreSessionsThanTheCacheHoldsIsAnErrorThatPasses) {
  // There is room for two full sequences; the third finds no blocks until one ends.
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 3; ++i) {
    sessions.push_back(Open());
    ASSERT_TRUE(sessions.back()->Append(std::vector<int32_t>(128, 67)).ok());
  }
  EXPECT_TRUE(sessions[0]->Evaluate().ok());
  EXPECT_TRUE(sessions[1]->Evaluate().ok());
  const absl::Status full = sessions[2]->Evaluate();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("the KV cache is full"));
  sessions.erase(sessions.begin());
  EXPECT_TRUE(sessions[1]->Evaluate().ok());
}

TEST_F(SessionTest, SessionsInStepGiveWhatTheyGiveAlone) {
  std::vector<std::vector<int32_t>> alone;
  for (const char* prompt : {"the", "and in"}) {
    const auto session = Open();
    ASSERT_TRUE(session->AppendText(prompt, {}).ok());
    alone.push_back(Run(session.get(), Tokens(12)).tokens);
  }
  const auto a = Open();
  const auto b = Open();
  ASSERT_TRUE(a->AppendText("the", {}).ok());
  ASSERT_TRUE(b->AppendText("and in", {}).ok());
  Session* const both[] = {a.get(), b.get()};
  const GenerateOptions options[] = {Tokens(12), Tokens(5)};
  Generation results[2];
  ASSERT_TRUE(GenerateTogether(both, options, results).ok());
  EXPECT_EQ(results[0].tokens, alone[0]);
  EXPECT_EQ(results[1].tokens, std::vector<int32_t>(alone[1].begin(), alone[1].begin() + 5));
}

TEST_F(SessionTest, TheHashCoversEveryPositionOnce) {
  SessionOptions options = Greedy();
  options.logits_hash = true;
  const auto session = Open(options);
  ASSERT_TRUE(session->AppendText("the end", {}).ok());
  const int64_t prompt = session->sequence().size();
  Run(session.get(), Tokens(6));
  EXPECT_EQ(session->logits_hash().rows(), prompt + 5);  // the last token was not read
  const std::string before = session->logits_hash().Text();
  // Rows that are computed again give the same hash; other tokens give another.
  const std::vector<int32_t> tokens = session->sequence().tokens();
  session->Truncate(2);
  ASSERT_TRUE(
      session->Append(std::span(tokens).subspan(2, static_cast<size_t>(prompt + 5 - 2))).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(session->logits_hash().Text(), before);
  EXPECT_THAT(before, HasSubstr("1-"));
  session->Truncate(3);
  ASSERT_TRUE(session->AppendText(" other", {}).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(session->logits_hash().rows(), session->sequence().size());
  EXPECT_NE(session->logits_hash().Text(), before);
}

TEST_F(SessionTest, BannedTokensAreNeverSampled) {
  SessionOptions options = Greedy();
  const auto free = Open(options);
  ASSERT_TRUE(free->AppendText("the", {}).ok());
  const int32_t first = Run(free.get(), Tokens(1)).tokens.at(0);
  options.sampler.logit_bias = {{first, -INFINITY}};
  const auto bound = Open(options);
  ASSERT_TRUE(bound->AppendText("the", {}).ok());
  for (int32_t token : Run(bound.get(), Tokens(20)).tokens) EXPECT_NE(token, first);
}

TEST_F(SessionTest, AbsurdSamplersAreRefused) {
  SessionOptions options;
  options.sampler.top_p = -3;
  EXPECT_EQ(Session::Create(engine_.get(), options).status().code(),
            absl::StatusCode::kInvalidArgument);
  options = {};
  options.stop = {""};
  EXPECT_EQ(Session::Create(engine_.get(), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, AbsurdEngineOptionsAreRefused) {
  const auto refused = [&](const std::function<void(EngineOptions*)>& spoil) {
    EngineOptions options = TestOptions(file_->path());
    spoil(&options);
    const auto engine = Engine::Load(options);
    return engine.ok() ? std::string("accepted") : std::string(engine.status().message());
  };
  EXPECT_THAT(refused([](auto* o) { o->kv_type_k = "q3"; }), HasSubstr("'q3' is no type"));
  EXPECT_THAT(refused([](auto* o) { o->kv_type_v = "q8_0"; }), HasSubstr("multiple of 32"));
  EXPECT_THAT(refused([](auto* o) { o->batch_tokens = -1; }), HasSubstr("batch size is -1"));
  EXPECT_THAT(refused([](auto* o) { o->threads = 100000; }), HasSubstr("threads"));
  EXPECT_THAT(refused([](auto* o) { o->max_sequences = -1; }), HasSubstr("sequences"));
  EXPECT_THAT(refused([](auto* o) { o->placement.split = SplitOf("cpu:2"); }),
              HasSubstr("the numbers must add up to 3"));
  EXPECT_THAT(refused([](auto* o) { o->placement.split = SplitOf("igpu:3"); }),
              HasSubstr("no device is called 'igpu'; there are: cpu"));
  EXPECT_THAT(refused([](auto* o) { o->model_path = ""; }), HasSubstr("no model file"));
  EXPECT_THAT(refused([](auto* o) { o->model_path = "/nonexistent.gguf"; }),
              HasSubstr("/nonexistent.gguf"));
  EXPECT_THAT(refused([](auto* o) { o->context = int64_t{1} << 29; }), HasSubstr("memory"));
}

}  // namespace
}  // namespace trine
