// Tests the context shift: after it the session equals a fresh one with the same tokens, bit for
// bit, and everything else goes on.
#include <algorithm>
#include <memory>

#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kContext = 48;

class ContextShiftTest : public testing::Test {
 protected:
  void Load(const std::string& model, const std::function<void(EngineOptions*)>& set = nullptr,
            const std::function<void(TinyModel*)>& change = nullptr) {
    if (const auto preset = FindPreset(model); preset.ok()) {
      file_ = std::make_unique<TempFile>(*MakeModelBytes(*preset));
    } else {
      TinyModel tiny = MakeTinyModel(*TinyModelByName(model));
      if (change) change(&tiny);
      file_ = std::make_unique<TempFile>(tiny.ToBytes());
    }
    EngineOptions options = TestOptions(file_->path());
    options.context = kContext;
    options.max_sequences = 4;
    options.threads = 1;
    if (set) set(&options);
    engine_ = MustLoad(options);
  }
  void SetUp() override { Load("llama"); }

  static SessionOptions Greedy() {
    SessionOptions options;
    options.sampler.temp = 0;
    options.ignore_eos = true;
    return options;
  }
  static SessionOptions Random() {
    SessionOptions options = Greedy();
    options.sampler.temp = 1;
    options.sampler.top_k = 0;
    options.sampler.seed = 5;
    return options;
  }
  static GenerateOptions Shifting(int64_t n, int64_t keep = 0) {
    GenerateOptions options;
    options.max_tokens = n;
    options.context_shift = true;
    options.keep = keep;
    return options;
  }
  std::unique_ptr<Session> Open(const SessionOptions& options,
                                std::string_view prompt = "the end") {
    auto session = Session::Create(engine_.get(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->AppendText(prompt, {}).ok());
    return *std::move(session);
  }
  static Generation Run(Session* session, const GenerateOptions& options) {
    Generation result;
    const absl::Status status = Generate(session, options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }
  // Expects logits and hash of a session that has read these tokens and nothing else.
  void ExpectLikeFresh(Session* session) {
    SessionOptions options = Greedy();
    options.logits_hash = session->keeps_logits_hash();
    const auto fresh = Session::Create(engine_.get(), options);
    ASSERT_TRUE((*fresh)->Append(session->sequence().tokens()).ok());
    ASSERT_TRUE((*fresh)->Evaluate().ok());
    ASSERT_TRUE(session->Evaluate().ok());
    const std::span<const float> a = session->logits(), b = (*fresh)->logits();
    ASSERT_FALSE(a.empty());
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    EXPECT_EQ(session->logits_hash().Text(), (*fresh)->logits_hash().Text());
    EXPECT_EQ(session->logits_hash().rows(), (*fresh)->logits_hash().rows());
  }

  std::unique_ptr<TempFile> file_;
  std::unique_ptr<Engine> engine_;
};

// Every token is what a fresh session with the same tokens would choose, also with penalties over
// all of them.
TEST_F(ContextShiftTest, EveryTokenIsAFunctionOfTheTokensBeforeIt) {
  for (const int64_t keep : {0, 3, -1}) {
    SessionOptions options = Greedy();
    options.sampler.repeat_last_n = -1;
    options.sampler.frequency_penalty = 0.5f;
    const auto session = Open(options);
    std::vector<int32_t> tokens = session->sequence().tokens();
    const size_t kept = keep < 0 ? tokens.size() : static_cast<size_t>(keep);
    const Generation g = Run(session.get(), Shifting(3 * kContext, keep));
    EXPECT_GE(g.context_shifts, 3);
    ASSERT_EQ(g.tokens.size(), static_cast<size_t>(3 * kContext));
    int64_t shifts = 0;
    for (const int32_t token : g.tokens) {
      if (tokens.size() == static_cast<size_t>(kContext)) {
        const size_t gone = (tokens.size() - kept) / 2;
        tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(kept),
                     tokens.begin() + static_cast<ptrdiff_t>(kept + gone));
        ++shifts;
      }
      const auto fresh = Session::Create(engine_.get(), options);
      ASSERT_TRUE((*fresh)->Append(tokens).ok());
      ASSERT_TRUE((*fresh)->Evaluate().ok());
      ASSERT_EQ(*(*fresh)->Sample(), token);
      tokens.push_back(token);
    }
    EXPECT_EQ(session->sequence().tokens(), tokens);
    EXPECT_EQ(g.context_shifts, shifts);
  }
}

TEST_F(ContextShiftTest, LogitsAndHashAreThoseOfAFreshSession) {
  const auto check = [&](const char* what) {
    for (const int64_t n : {45, 100}) {
      SessionOptions options = Greedy();
      options.logits_hash = true;
      const auto session = Open(options);
      EXPECT_GE(Run(session.get(), Shifting(n, 2)).context_shifts, 1) << what;
      ExpectLikeFresh(session.get());
    }
  };
  // Also with windows, sinks, experts and rescaled positions.
  for (const char* model : {"llama", "llama3", "llama-linear", "llama-q8", "qwen2", "tiny-gemma3",
                            "tiny-gpt-oss", "tiny-phi3-long", "tiny-llama-yarn"}) {
    Load(model);
    check(model);
  }
  Load("qwen3", [](EngineOptions* o) { o->kv_type_k = o->kv_type_v = "q8_0"; });
  check("a quantised cache");
  Load("llama", [](EngineOptions* o) { o->batch_tokens = 5, o->threads = 3; });
  check("passes of 5");
  Load("llama", [](EngineOptions* o) { o->placement.split = SplitOf("cpu:2,cpu:1"); });
  check("a split");
}

TEST_F(ContextShiftTest, ByHandItIsTheSame) {
  SessionOptions options = Random();
  for (const int mirostat : {0, 2}) {
    options.sampler.mirostat = mirostat;
    const auto whole = Open(options);
    const Generation g = Run(whole.get(), Shifting(2 * kContext, 1));
    const auto steps = Open(options);
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < 2 * kContext; ++i) {
      ASSERT_TRUE(steps->Evaluate().ok());
      auto token = steps->Sample();
      if (absl::IsOutOfRange(token.status())) {  // no token was drawn
        ASSERT_TRUE(steps->Erase(1, 1 + (kContext - 1) / 2).ok());
        ASSERT_TRUE(steps->Evaluate().ok());
        token = steps->Sample();
      }
      ASSERT_TRUE(token.ok()) << token.status();
      tokens.push_back(*token);
    }
    EXPECT_EQ(g.tokens, tokens);
  }
}

TEST_F(ContextShiftTest, SessionsInStepGiveWhatTheyGiveAlone) {
  const auto alone_a = Open(Random(), "the"), alone_b = Open(Random(), "and in the other end of");
  const std::vector<int32_t> a = Run(alone_a.get(), Shifting(80)).tokens;
  const std::vector<int32_t> b = Run(alone_b.get(), Shifting(120, -1)).tokens;
  const auto one = Open(Random(), "the"), two = Open(Random(), "and in the other end of");
  Session* const both[] = {one.get(), two.get()};
  const GenerateOptions options[] = {Shifting(80), Shifting(120, -1)};
  Generation results[2];
  ASSERT_TRUE(GenerateTogether(both, options, results).ok());
  EXPECT_EQ(results[0].tokens, a);
  EXPECT_EQ(results[1].tokens, b);
}

TEST_F(ContextShiftTest, WithoutItTheGenerationEnds) {
  const auto session = Open(Greedy());
  GenerateOptions options = Shifting(-1);
  options.context_shift = false;
  const Generation g = Run(session.get(), options);
  EXPECT_EQ(g.finish, FinishReason::kContextFull);
  EXPECT_EQ(g.context_shifts, 0);
  // And goes on where it is allowed to.
  EXPECT_EQ(Run(session.get(), Shifting(10)).tokens.size(), 10u);
}

TEST_F(ContextShiftTest, ThePromptIsNeverCut) {
  const auto session = Open(Greedy());
  EXPECT_EQ(session->Append(std::vector<int32_t>(kContext, 65)).code(),
            absl::StatusCode::kOutOfRange);
}

TEST_F(ContextShiftTest, WhatCanNotBeKeptIsRefusedAtOnce) {
  const auto session = Open(Greedy(), std::string(kContext - 1, 'x'));
  Generation g;
  const absl::Status all = Generate(session.get(), Shifting(5, -1), &g);
  EXPECT_EQ(all.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(all.message()),
              HasSubstr("keeps 47 tokens needs a context of 49 at least: it holds 48"));
  EXPECT_EQ(Generate(session.get(), Shifting(5, -2), &g).code(),
            absl::StatusCode::kInvalidArgument);
  // Keeping more than all tokens keeps all of them; one less leaves room to shift.
  EXPECT_FALSE(Generate(session.get(), Shifting(5, 1000), &g).ok());
  EXPECT_EQ(Run(session.get(), Shifting(5, kContext - 2)).tokens.size(), 5u);
  session->Truncate(4);
  EXPECT_EQ(Run(session.get(), Shifting(60, 1000)).tokens.size(), 60u);
}

TEST_F(ContextShiftTest, TheBosStays) {
  const auto begins = [&] {
    const auto session = Open(Greedy());
    const int32_t first = session->sequence().tokens()[0], second = session->sequence().tokens()[1];
    EXPECT_NE(first, second);
    EXPECT_GE(Run(session.get(), Shifting(60)).context_shifts, 1);
    EXPECT_NE(session->sequence().tokens()[1], second);
    return session->sequence().tokens()[0] == first;
  };
  EXPECT_FALSE(begins());
  Load("llama", nullptr,
       [](TinyModel* m) { m->builder.SetBool("tokenizer.ggml.add_bos_token", true); });
  EXPECT_TRUE(begins());
}

TEST_F(ContextShiftTest, AStopStringIsSeenAcrossTheShift) {
  // Find where the text is when the first shift is due.
  size_t at = 0;
  const auto session = Open(Random());
  GenerateOptions options = Shifting(100);
  std::string text;
  options.on_text = [&](std::string_view piece) {
    text += piece;
    if (session->sequence().size() == kContext && at == 0) at = text.size();
    return true;
  };
  Run(session.get(), options);
  ASSERT_GT(at, 4u);
  SessionOptions stopping = Random();
  stopping.stop = {text.substr(at - 3, 8)};
  const auto stopped = Open(stopping);
  const Generation g = Run(stopped.get(), Shifting(100));
  EXPECT_EQ(g.finish, FinishReason::kStopString);
  EXPECT_EQ(g.context_shifts, 1);
  EXPECT_EQ(g.text, text.substr(0, text.find(stopping.stop[0])));
}

// The other session's token arrives while the rest of the first one is still to be read.
TEST_F(ContextShiftTest, ACancelWhileTheRestIsReadAgainIsHeeded) {
  const auto whole = Open(Random(), "the");
  const std::vector<int32_t> want = Run(whole.get(), Shifting(100)).tokens;
  const auto shifted = Open(Random(), "the"), other = Open(Random(), "and in");
  GenerateOptions options[] = {Shifting(100), Shifting(90)};
  options[1].on_token = [&](const SampleResult&) {
    if (shifted->sequence().pending() > 1) shifted->Cancel();
    return true;
  };
  Session* const both[] = {shifted.get(), other.get()};
  Generation results[2];
  ASSERT_TRUE(GenerateTogether(both, options, results).ok());
  EXPECT_EQ(results[0].finish, FinishReason::kCancelled);
  EXPECT_EQ(results[0].context_shifts, 1);
  EXPECT_GT(shifted->sequence().pending(), 1);
  EXPECT_EQ(results[1].tokens.size(), 90u);
  std::vector<int32_t> tokens = results[0].tokens;
  const Generation rest = Run(shifted.get(), Shifting(100 - static_cast<int64_t>(tokens.size())));
  tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(tokens, want);
}

TEST_F(ContextShiftTest, BlocksThatTheRestNeedsStayItsOwn) {
  // The cache has two blocks for all. A full sequence has both; erasing half of it leaves one.
  Load("llama", [](EngineOptions* o) { o->context = 128, o->max_sequences = 1; });
  const auto full = Open(Greedy(), ""), other = Open(Greedy(), "");
  ASSERT_TRUE(full->Append(std::vector<int32_t>(128, 65)).ok());
  ASSERT_TRUE(full->Evaluate().ok());
  ASSERT_TRUE(full->Erase(0, 64).ok());
  ASSERT_TRUE(other->Append(std::vector<int32_t>(65, 66)).ok());
  EXPECT_EQ(other->Evaluate().code(), absl::StatusCode::kResourceExhausted);
  other->Truncate(60);
  EXPECT_TRUE(other->Evaluate().ok());
  EXPECT_TRUE(full->Evaluate().ok());
  // It needs the block that the other session has. When that session ends, nothing is lost.
  Generation g;
  EXPECT_EQ(Generate(full.get(), Shifting(40), &g).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(g.tokens.size(), 1u);
  other->Truncate(0);
  EXPECT_EQ(Run(full.get(), Shifting(100)).context_shifts, 1);
  ASSERT_TRUE(full->Evaluate().ok());
  const std::vector<float> logits(full->logits().begin(), full->logits().end());
  const std::vector<int32_t> tokens = full->sequence().tokens();
  full->Truncate(0);
  EXPECT_EQ(logits, AllLogits(engine_.get(), tokens).back());
}

TEST_F(ContextShiftTest, EraseTakesOutWhatItIsTold) {
  const auto sequence = engine_->NewSequence();
  Sequence* const one[] = {sequence.get()};
  ASSERT_TRUE(sequence->Append(std::vector<int32_t>{10, 11, 12, 13, 14, 15}).ok());
  EXPECT_EQ(sequence->Erase(-1, 2).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sequence->Erase(3, 2).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sequence->Erase(2, 7).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(engine_->Evaluate(one).ok());
  EXPECT_TRUE(sequence->Erase(6, 6).ok());
  EXPECT_EQ(sequence->pending(), 0);
  EXPECT_FALSE(sequence->logits().empty());

  ASSERT_TRUE(sequence->Erase(2, 4).ok());
  EXPECT_THAT(sequence->tokens(), ElementsAre(10, 11, 14, 15));
  EXPECT_EQ(sequence->evaluated(), 2);
  EXPECT_TRUE(sequence->logits().empty());
  ASSERT_TRUE(engine_->Evaluate(one).ok());
  const std::vector<float> logits(sequence->logits().begin(), sequence->logits().end());
  EXPECT_EQ(logits, AllLogits(engine_.get(), {10, 11, 14, 15}).back());

  // At the end, Erase is Truncate: the last token that stays is evaluated again.
  ASSERT_TRUE(sequence->Erase(3, 4).ok());
  EXPECT_EQ(sequence->evaluated(), 2);
  // Erase tokens that are still pending, too.
  ASSERT_TRUE(sequence->Append(std::vector<int32_t>{20, 21}).ok());
  ASSERT_TRUE(sequence->Erase(3, 4).ok());
  EXPECT_THAT(sequence->tokens(), ElementsAre(10, 11, 14, 21));
  EXPECT_EQ(sequence->evaluated(), 2);
  ASSERT_TRUE(sequence->Erase(0, 4).ok());
  EXPECT_EQ(sequence->size(), 0);
  EXPECT_EQ(sequence->pending(), 0);
}

}  // namespace
}  // namespace trine
