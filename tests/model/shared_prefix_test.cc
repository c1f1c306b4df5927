// Tests sessions that share KV blocks: everything is as if each had read its own, to the bit.
#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kBlock = kBlockPositions;

class SharedPrefixTest : public testing::Test {
 protected:
  SharedPrefixTest() : file_(Model()) {}

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = 4;
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = 128;
    spec.n_ff = 256;
    return MakeTinyModel(spec).ToBytes();
  }
  EngineOptions Options() {
    EngineOptions options = TestOptions(file_.path());
    options.context = 256;
    options.max_sequences = 4;
    options.batch_tokens = 48;  // less than a block: passes end inside of them
    options.threads = 1;
    return options;
  }
  void Load(const EngineOptions& options) {
    engine_ = MustLoad(options);
    ASSERT_NE(engine_, nullptr);
  }
  void SetUp() override { Load(Options()); }
  // With no session open, all blocks that are not free belong to the prefix cache.
  void TearDown() override {
    if (engine_ == nullptr) return;
    const PrefixCacheCounters c = engine_->prefix_counters();
    EXPECT_EQ(c.free_blocks + c.held_blocks, c.total_blocks);
  }

  std::unique_ptr<Session> Open(std::optional<std::string> space, bool hash = false) {
    SessionOptions options;
    options.sampler.temp = 0;
    options.ignore_eos = true;
    options.prefix_space = std::move(space);
    options.logits_hash = hash;
    auto session = Session::Create(engine_.get(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  static Tokens Text(int64_t n, uint32_t seed) {
    std::mt19937 random(seed);
    Tokens tokens;
    for (int64_t i = 0; i < n; ++i) tokens.push_back(static_cast<int32_t>(random() % 256));
    return tokens;
  }
  // Returns `common` tokens of one text, then `own` tokens of another.
  static Tokens Prompt(int64_t common, int64_t own, uint32_t seed) {
    Tokens tokens = Text(common, 1);
    const Tokens rest = Text(own, 100 + seed);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    return tokens;
  }
  static std::vector<float> Logits(const Session& session) {
    EXPECT_FALSE(session.logits().empty());
    return {session.logits().begin(), session.logits().end()};
  }
  std::vector<float> LogitsAlone(const Tokens& tokens) {
    const auto session = Open(std::nullopt);
    EXPECT_TRUE(session->Append(tokens).ok());
    EXPECT_TRUE(session->Evaluate().ok());
    EXPECT_EQ(session->sequence().cached_tokens(), 0);
    return Logits(*session);
  }
  std::unique_ptr<Session> Read(const std::string& space, const Tokens& tokens) {
    auto session = Open(space);
    EXPECT_TRUE(session->Append(tokens).ok());
    const absl::Status status = session->Evaluate();
    EXPECT_TRUE(status.ok()) << status;
    return session;
  }
  static Generation Go(Session* session, int64_t n_tokens) {
    Generation result;
    GenerateOptions options;
    options.max_tokens = n_tokens;
    const absl::Status status = Generate(session, options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }
  Tokens AnswerAlone(const Tokens& tokens, int64_t n) {
    const auto session = Open(std::nullopt);
    EXPECT_TRUE(session->Append(tokens).ok());
    return Go(session.get(), n).tokens;
  }

  TempFile file_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(SharedPrefixTest, CommonBeginningsOfAllLengthsAroundBorders) {
  for (const int64_t common : {1, 63, 64, 65, 100, 127, 128, 129, 191, 192, 193}) {
    for (const int64_t own : {0, 1, 40}) {
      SCOPED_TRACE(absl::StrCat(common, " and ", own));
      const std::string space = absl::StrCat(common, "-", own);
      const Tokens tokens = Prompt(common, own, 2);
      Read(space, Prompt(common, 20, 1));
      const auto session = Read(space, tokens);
      const int64_t most = std::min(common, common + own - 1);
      EXPECT_EQ(session->sequence().cached_tokens(), most / kBlock * kBlock);
      EXPECT_EQ(Logits(*session), LogitsAlone(tokens));
      EXPECT_EQ(Go(session.get(), 6).tokens, AnswerAlone(tokens, 6));
    }
  }
}

TEST_F(SharedPrefixTest, AnAnswerIsPartOfWhatIsShared) {
  const auto first = Open("a");
  ASSERT_TRUE(first->Append(Text(50, 1)).ok());
  const Generation answer = Go(first.get(), 100);
  EXPECT_EQ(answer.prompt_tokens, 50);
  EXPECT_EQ(answer.cached_tokens, 0);
  Tokens next = first->sequence().tokens();
  next.insert(next.end(), {7, 8, 9});
  const auto second = Open("a");
  ASSERT_TRUE(second->Append(next).ok());
  const Generation g = Go(second.get(), 8);
  EXPECT_EQ(g.prompt_tokens, 153);
  EXPECT_EQ(g.cached_tokens, 2 * kBlock);
  EXPECT_EQ(g.tokens, AnswerAlone(next, 8));
  EXPECT_EQ(Go(second.get(), 4).cached_tokens, 0);
}

TEST_F(SharedPrefixTest, OnlyTheSameSpaceShares) {
  const Tokens tokens = Text(130, 1);
  Read("a", tokens);
  EXPECT_EQ(Read("b", tokens)->sequence().cached_tokens(), 0);
  EXPECT_EQ(Read("", tokens)->sequence().cached_tokens(), 0);
  LogitsAlone(tokens);
  EXPECT_EQ(engine_->prefix_counters().hit_tokens, 0u);
  EXPECT_EQ(Read("b", tokens)->sequence().cached_tokens(), 2 * kBlock);
}

TEST_F(SharedPrefixTest, WhoWantsAllRowsReadsAllTokens) {
  const Tokens tokens = Text(130, 1);
  Read("a", tokens);
  const auto session = Open("a", /*hash=*/true);
  ASSERT_TRUE(session->Append(tokens).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(session->sequence().cached_tokens(), 0);
  EXPECT_EQ(session->logits_hash().Text(), HashOf(engine_.get(), tokens));
  // Its blocks are shared all the same: rows of tokens read again are not reported again.
  session->Truncate(101);
  ASSERT_TRUE(session->Append(Text(9, 5)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(session->logits_hash().Text(), HashOf(engine_.get(), session->sequence().tokens()));
}

TEST_F(SharedPrefixTest, SeveralAtOnce) {
  std::vector<Tokens> prompts;
  std::vector<std::vector<float>> alone;
  for (uint32_t i = 0; i < 4; ++i) prompts.push_back(Prompt(150, 10 + 20 * i, i));
  for (const Tokens& prompt : prompts) alone.push_back(LogitsAlone(prompt));
  for (int round = 0; round < 2; ++round) {  // first without the block, then with it
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    int64_t cached = 0;
    for (const Tokens& prompt : prompts) {
      sessions.push_back(Open("a"));
      pointers.push_back(sessions.back().get());
      ASSERT_TRUE(sessions.back()->Append(prompt).ok());
    }
    ASSERT_TRUE(EvaluateTogether(pointers).ok());
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(Logits(*sessions[i]), alone[i]);
      cached += sessions[i]->sequence().cached_tokens();
    }
    if (round == 0) {
      EXPECT_GT(cached, 0);  // the first one's, as it goes
    } else {
      EXPECT_EQ(cached, (2 + 2 + 3 + 3) * kBlock);
    }
    // Common blocks are held once, besides what each sequence has of its own.
    const PrefixCacheCounters c = engine_->prefix_counters();
    EXPECT_EQ(c.total_blocks - c.free_blocks, 2 + 1 + 1 + 2 + 2);
  }
}

TEST_F(SharedPrefixTest, TruncationIntoSharedBlocks) {
  const Tokens tokens = Text(200, 1);
  const auto first = Read("a", tokens);
  for (const int64_t n : {1, 63, 64, 65, 66, 100, 128, 129, 192, 199}) {
    SCOPED_TRACE(n);
    const auto second = Read("a", tokens);
    second->Truncate(n);
    Tokens changed(tokens.begin(), tokens.begin() + n);
    for (const int32_t token : Text(30, 7)) changed.push_back(token);
    ASSERT_TRUE(second->Append(Text(30, 7)).ok());
    EXPECT_EQ(Go(second.get(), 3).tokens, AnswerAlone(changed, 3));
    second->Truncate(n);  // again, into what it has written itself
    ASSERT_TRUE(second->Evaluate().ok());
    EXPECT_EQ(Logits(*second), LogitsAlone(Tokens(tokens.begin(), tokens.begin() + n)));
  }
  // The other sessions are unchanged.
  EXPECT_EQ(Logits(*Read("a", tokens)), LogitsAlone(tokens));
  EXPECT_EQ(Go(first.get(), 10).tokens, AnswerAlone(tokens, 10));
}

TEST_F(SharedPrefixTest, ErasureInSharedBlocks) {
  const Tokens tokens = Text(220, 1);
  const auto first = Read("a", tokens);
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 1}, {10, 80}, {63, 65}, {64, 128}, {100, 220}, {128, 129}, {190, 200}}) {
    SCOPED_TRACE(absl::StrCat(begin, " to ", end));
    const auto second = Read("a", tokens);
    ASSERT_TRUE(second->Erase(begin, end).ok());
    Tokens changed = tokens;
    changed.erase(changed.begin() + begin, changed.begin() + end);
    EXPECT_EQ(Go(second.get(), 3).tokens, AnswerAlone(changed, 3));
  }
  EXPECT_EQ(Logits(*Read("a", tokens)), LogitsAlone(tokens));
  EXPECT_EQ(Go(first.get(), 10).tokens, AnswerAlone(tokens, 10));
}

TEST_F(SharedPrefixTest, ASessionThatGoesOnAdoptsToo) {
  Read("a", Prompt(250, 0, 1));
  const auto session = Read("a", Prompt(50, 0, 1));
  EXPECT_EQ(session->sequence().cached_tokens(), 0);
  const Tokens whole = Prompt(250, 0, 1);
  ASSERT_TRUE(session->Append(std::span(whole).subspan(50)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(session->sequence().cached_tokens(), 3 * kBlock - 50);
  EXPECT_EQ(Logits(*session), LogitsAlone(whole));
}

TEST_F(SharedPrefixTest, WhatIsKeptTakesNobodysRoom) {
  for (uint32_t i = 0; i < 6; ++i) Read("a", Text(256, i));  // more than there is room for
  EXPECT_GT(engine_->prefix_counters().evictions, 0u);
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Session*> pointers;
  for (uint32_t i = 0; i < 4; ++i) {
    sessions.push_back(Open("a"));
    pointers.push_back(sessions.back().get());
    ASSERT_TRUE(sessions.back()->Append(Text(256, 50 + i)).ok());
  }
  ASSERT_TRUE(EvaluateTogether(pointers).ok());
  EXPECT_EQ(engine_->prefix_counters().free_blocks, 0);
}

// Threads with texts of a common beginning, in a cache that is too small to keep them all.
TEST_F(SharedPrefixTest, FromSeveralThreads) {
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 100 : 12;
  std::vector<Tokens> prompts, answers;
  for (uint32_t i = 0; i < 6; ++i) prompts.push_back(Prompt(40 + 30 * (i % 4), 20 + 9 * i, i));
  for (const Tokens& prompt : prompts) answers.push_back(AnswerAlone(prompt, 20));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int round = 0; round < rounds; ++round) {
        const size_t i = random() % prompts.size();
        const auto session = Open(random() % 4 == 0 ? "b" : "a");
        if (!session->Append(prompts[i]).ok()) ++wrong;
        if (Go(session.get(), 20).tokens != answers[i]) ++wrong;
        const auto back = static_cast<int64_t>(random() % prompts[i].size());
        session->Truncate(back);
        if (!session->Append(std::span(prompts[i]).subspan(static_cast<size_t>(back))).ok()) {
          ++wrong;
        }
        if (Go(session.get(), 20).tokens != answers[i]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(engine_->prefix_counters().hit_tokens, 0u);
}

// Several devices, one of which is lost while blocks are shared.
class SharedPrefixLossTest : public SharedPrefixTest {
 protected:
  EngineOptions Split(const std::string& faults) {
    EngineOptions options = Options();
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf("several0:1,cpu:2,several1:1");
    options.faults = faults;
    options.readmission.first = std::chrono::hours(1);  // only when the test asks for it
    const bool hangs = faults.find("hang") != std::string::npos;
    options.stage_limit = std::chrono::milliseconds(hangs ? 3'000 : 30'000);
    return options;
  }
};

TEST_F(SharedPrefixLossTest, TheTextGoesOn) {
  std::vector<Tokens> prompts, answers;
  for (uint32_t i = 0; i < 4; ++i) prompts.push_back(Prompt(140, 4 + 10 * i, i));
  for (const Tokens& prompt : prompts) answers.push_back(AnswerAlone(prompt, 50));
  for (const char* faults :
       {"several0:lost@run=2", "several0:lost@run=5", "cpu:oom@run=6", "several1:lost@token=1",
        "several0:lost@token=20", "several0:lost@token=5;several1:lost@token=20",
        "several1:hang@token=7", "several0:lost@token=9,back=0"}) {
    SCOPED_TRACE(faults);
    Load(Split(faults));
    auto first = Read("a", prompts[0]);
    std::vector<std::thread> threads;
    std::vector<Tokens> got(4);
    for (size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto session = i == 0 ? std::move(first) : Open("a");
        if (i != 0) {
          EXPECT_TRUE(session->Append(prompts[i]).ok());
        }
        got[i] = Go(session.get(), 50).tokens;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(got, answers);
    ASSERT_FALSE(engine_->segments().empty());
    EXPECT_GT(engine_->segments()[0].placement, 1u);
    // Blocks that were kept belong to the current devices.
    EXPECT_EQ(Logits(*Read("a", prompts[1])), LogitsAlone(prompts[1]));
    EXPECT_GT(engine_->prefix_counters().hit_tokens, 0u);
    TearDown();
  }
}

// All contexts are full and shared, and no block is free: each sequence drops its blocks and reads.
TEST_F(SharedPrefixLossTest, ThereIsRoomToReplay) {
  Tokens prompt = Text(250, 3);
  const Tokens answer = AnswerAlone(prompt, 6);
  Load(Split("several0:lost@token=1,back=0"));
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(Read("a", prompt));
  EXPECT_EQ(engine_->prefix_counters().free_blocks, 16 - 3 - 4);
  // Idle sessions hold shared blocks while the model is placed anew.
  std::vector<Session*> pointers;
  std::vector<GenerateOptions> options(4);
  for (size_t i = 0; i < 4; ++i) options[i].max_tokens = 6;
  for (const auto& session : sessions) pointers.push_back(session.get());
  std::vector<Generation> results(4);
  EXPECT_EQ(AnswerAlone(Text(60, 4), 2).size(), 2u);
  ASSERT_EQ(engine_->lost_devices().size(), 1u);
  EXPECT_EQ(engine_->prefix_counters().held_blocks, 0);
  ASSERT_TRUE(GenerateTogether(pointers, options, results).ok());
  for (const Generation& g : results) EXPECT_EQ(g.tokens, answer);
  sessions.clear();
  ASSERT_TRUE(engine_->Readmit("several0").ok());
  EXPECT_EQ(engine_->prefix_counters().held_blocks, 0);
  const auto again = Open("a");
  ASSERT_TRUE(again->Append(prompt).ok());
  EXPECT_EQ(Go(again.get(), 6).tokens, answer);
}

}  // namespace
}  // namespace trine
