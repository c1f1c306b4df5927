// Tests checkpoints, regressions and forks: however a session came to its tokens, everything about
// it is as if it had read them afresh, to the bit.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/constraint/mask/constraint.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using Tokens = std::vector<int32_t>;
using ::testing::ElementsAreArray;

class BranchingTest : public testing::Test {
 protected:
  BranchingTest() : file_(Model()) {}

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
    options.max_sequences = 6;
    options.batch_tokens = 48;
    options.threads = 1;
    return options;
  }
  void Load(const EngineOptions& options) {
    engine_ = MustLoad(options);
    ASSERT_NE(engine_, nullptr);
  }
  void SetUp() override { Load(Options()); }
  // All blocks must be given back.
  void TearDown() override {
    if (engine_ == nullptr) return;
    const PrefixCacheCounters c = engine_->prefix_counters();
    EXPECT_EQ(c.free_blocks + c.held_blocks, c.total_blocks);
  }

  SessionOptions Sampling(bool hash = true) {
    SessionOptions options;
    options.sampler.temp = 0.9F;
    options.sampler.seed = 11;
    options.sampler.repeat_penalty = 1.1F;
    options.ignore_eos = true;
    options.logits_hash = hash;
    return options;
  }
  std::unique_ptr<Session> Open(const SessionOptions& options) {
    auto session = Session::Create(engine_.get(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  Tokens Some(size_t count, uint32_t seed) const {
    std::mt19937 random(seed);
    Tokens tokens(count);
    for (int32_t& t : tokens) {
      t = static_cast<int32_t>(random() % static_cast<uint32_t>(engine_->config().n_vocab));
    }
    return tokens;
  }
  // Generates `count` tokens, one at a time.
  static Tokens Go(Session* session, int count) {
    Tokens tokens;
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(session->Evaluate().ok());
      const auto token = session->Sample();
      EXPECT_TRUE(token.ok()) << token.status();
      if (token.ok()) tokens.push_back(*token);
    }
    return tokens;
  }
  static std::vector<float> Row(const Session& session) {
    return {session.logits().begin(), session.logits().end()};
  }
  // Returns the row of the same tokens in a fresh session.
  std::vector<float> FreshRow(const Tokens& tokens) {
    auto session = Open(Sampling(/*hash=*/false));
    EXPECT_TRUE(session->Append(tokens).ok());
    EXPECT_TRUE(session->Evaluate().ok());
    return Row(*session);
  }
  std::string FreshHash(const Tokens& tokens) {
    auto session = Open(Sampling());
    EXPECT_TRUE(session->Append(tokens).ok());
    EXPECT_TRUE(session->Evaluate().ok());
    return session->logits_hash().Text();
  }
  void GoRandomWays(int steps, uint32_t seed);
  static Tokens TokensOf(const Session& session) { return session.sequence().tokens(); }

  TempFile file_;
  std::unique_ptr<Engine> engine_;
};

// The checkpoint is in the middle of a block, at its end or at the very beginning.
TEST_F(BranchingTest, GoesBackAndGoesOnAsBefore) {
  for (size_t prompt : {size_t{1}, size_t{30}, size_t{63}, size_t{64}, size_t{65}, size_t{150}}) {
    auto session = Open(Sampling());
    ASSERT_TRUE(session->Append(Some(prompt, 1)).ok());
    ASSERT_TRUE(session->Evaluate().ok());
    const auto t = session->Checkpoint();
    ASSERT_TRUE(t.ok());
    const std::vector<float> row = Row(*session);
    const Tokens first = Go(session.get(), 70);
    ASSERT_TRUE(session->Evaluate().ok());
    const std::string hash = session->logits_hash().Text();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(session->Regress(*t).ok());
      EXPECT_EQ(session->sequence().size(), static_cast<int64_t>(prompt));
      EXPECT_EQ(Row(*session), row) << "logits come back without a pass";
      EXPECT_EQ(session->sequence().pending(), 0);
      EXPECT_THAT(Go(session.get(), 70), ElementsAreArray(first)) << "random numbers come back";
      ASSERT_TRUE(session->Evaluate().ok());
      EXPECT_EQ(session->logits_hash().Text(), hash);
    }
    EXPECT_EQ(FreshHash(TokensOf(*session)), hash);
  }
}

TEST_F(BranchingTest, OtherTokensBehindACheckpointAreAsReadAfresh) {
  auto session = Open(Sampling());
  ASSERT_TRUE(session->Append(Some(100, 2)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  const auto t = session->Checkpoint();
  ASSERT_TRUE(t.ok());
  for (uint32_t branch = 0; branch < 4; ++branch) {
    ASSERT_TRUE(session->Regress(*t).ok());
    ASSERT_TRUE(session->Append(Some(20 + branch, 100 + branch)).ok());
    ASSERT_TRUE(session->Evaluate().ok());
    EXPECT_EQ(Row(*session), FreshRow(TokensOf(*session)));
    EXPECT_EQ(session->logits_hash().Text(), FreshHash(TokensOf(*session)));
  }
}

TEST_F(BranchingTest, TokensThatWaitAtACheckpointAreReadWhenItIsGoneBackTo) {
  auto session = Open(Sampling());
  ASSERT_TRUE(session->Append(Some(70, 3)).ok());
  const auto t = session->Checkpoint();
  ASSERT_TRUE(t.ok());
  ASSERT_TRUE(session->Append(Some(10, 4)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  ASSERT_TRUE(session->Regress(*t).ok());
  EXPECT_TRUE(session->logits().empty());
  EXPECT_EQ(session->sequence().pending(), 1);
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(Row(*session), FreshRow(Some(70, 3)));
}

TEST_F(BranchingTest, LaterCheckpointsAreForgottenAndLostOnesAreNotFound) {
  auto session = Open(Sampling());
  ASSERT_TRUE(session->Append(Some(10, 5)).ok());
  const auto a = session->Checkpoint();
  Go(session.get(), 5);
  const auto b = session->Checkpoint();
  Go(session.get(), 5);
  const auto c = session->Checkpoint();
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  ASSERT_TRUE(session->Regress(*b).ok());
  EXPECT_EQ(session->Regress(*c).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session->checkpoints(), 2u);
  session->Truncate(12);
  EXPECT_EQ(session->Regress(*b).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(session->Erase(2, 4).ok());
  EXPECT_EQ(session->Regress(*a).code(), absl::StatusCode::kNotFound);
  const auto d = session->Checkpoint();
  ASSERT_TRUE(d.ok());
  EXPECT_GT(*d, *c) << "a number is not used twice";
  ASSERT_TRUE(session->Forget(*d).ok());
  EXPECT_EQ(session->Forget(*d).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session->Regress(-1).code(), absl::StatusCode::kNotFound);
}

TEST_F(BranchingTest, ForksGoTheirOwnWays) {
  for (size_t prompt : {size_t{1}, size_t{63}, size_t{64}, size_t{100}}) {
    auto session = Open(Sampling());
    ASSERT_TRUE(session->Append(Some(prompt, 6)).ok());
    ASSERT_TRUE(session->Evaluate().ok());
    const int64_t free = engine_->prefix_counters().free_blocks;
    auto same = session->Fork();
    auto other = session->Fork(/*seed=*/99);
    ASSERT_TRUE(same.ok() && other.ok());
    EXPECT_EQ(engine_->prefix_counters().free_blocks, free) << "nothing is copied";
    EXPECT_EQ(Row(**same), Row(*session));
    const Tokens first = Go(same->get(), 40), second = Go(other->get(), 40);
    EXPECT_THAT(Go(session.get(), 40), ElementsAreArray(first));
    EXPECT_NE(first, second);
    for (Session* s : {session.get(), same->get(), other->get()}) {
      ASSERT_TRUE(s->Evaluate().ok());
      EXPECT_EQ(Row(*s), FreshRow(TokensOf(*s)));
      EXPECT_EQ(s->logits_hash().Text(), FreshHash(TokensOf(*s)));
    }
  }
}

TEST_F(BranchingTest, AForkOutlivesItsOrigin) {
  auto session = Open(Sampling());
  ASSERT_TRUE(session->Append(Some(90, 7)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  auto fork = session->Fork();
  ASSERT_TRUE(fork.ok());
  session.reset();
  auto noise = Open(Sampling(/*hash=*/false));  // takes the blocks that are free
  ASSERT_TRUE(noise->Append(Some(200, 8)).ok());
  ASSERT_TRUE(noise->Evaluate().ok());
  Go(fork->get(), 30);
  ASSERT_TRUE((*fork)->Evaluate().ok());
  EXPECT_EQ(Row(**fork), FreshRow(TokensOf(**fork)));
}

// All branches of a search share passes.
TEST_F(BranchingTest, BranchesAreEvaluatedInOneBatch) {
  auto session = Open(Sampling());
  ASSERT_TRUE(session->Append(Some(130, 9)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  std::vector<std::unique_ptr<Session>> forks;
  std::vector<Session*> all;
  for (uint32_t i = 0; i < 5; ++i) {
    auto fork = session->Fork();
    ASSERT_TRUE(fork.ok());
    ASSERT_TRUE((*fork)->Append(Some(8, 200 + i)).ok());
    all.push_back(fork->get());
    forks.push_back(*std::move(fork));
  }
  const auto passes = [&] { return engine_->segments().front().stage.jobs; };
  const auto before = passes();
  ASSERT_TRUE(EvaluateTogether(all).ok());
  EXPECT_EQ(passes(), before + 1);
  for (Session* s : all) EXPECT_EQ(Row(*s), FreshRow(TokensOf(*s)));
}

TEST_F(BranchingTest, TheGrammarsStateComesBack) {
  auto constraint =
      Constraint::FromGbnf(R"(root ::= [a-c]+ ";" [0-9]+ ".")", engine_->constraint_vocabulary());
  ASSERT_TRUE(constraint.ok()) << constraint.status();
  SessionOptions options = Sampling();
  options.ignore_eos = false;
  options.constraint = *constraint;
  auto session = Open(options);
  ASSERT_TRUE(session->Append(Some(20, 10)).ok());
  Go(session.get(), 4);
  const auto t = session->Checkpoint();
  ASSERT_TRUE(t.ok());
  auto fork = session->Fork();
  ASSERT_TRUE(fork.ok());
  const Tokens first = Go(session.get(), 10);
  ASSERT_TRUE(session->Regress(*t).ok());
  EXPECT_THAT(Go(session.get(), 10), ElementsAreArray(first));
  EXPECT_THAT(Go(fork->get(), 10), ElementsAreArray(first));
}

// Regresses into the middle of a block that is shared through the prefix cache.
TEST_F(BranchingTest, WhatOthersShareIsNotWrittenTo) {
  SessionOptions options = Sampling(/*hash=*/false);
  options.prefix_space = "all";
  auto session = Open(options);
  const Tokens prompt = Some(100, 11);
  ASSERT_TRUE(session->Append(prompt).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  const auto t = session->Checkpoint();
  ASSERT_TRUE(t.ok());
  Go(session.get(), 60);
  ASSERT_TRUE(session->Evaluate().ok());  // two blocks are full, and the tree's
  const Tokens all = TokensOf(*session);
  ASSERT_TRUE(session->Regress(*t).ok());
  ASSERT_TRUE(session->Append(Some(40, 12)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(Row(*session), FreshRow(TokensOf(*session)));
  auto second = Open(options);
  ASSERT_TRUE(second->Append(all).ok());
  ASSERT_TRUE(second->Evaluate().ok());
  EXPECT_EQ(second->sequence().cached_tokens(), 128);
  EXPECT_EQ(Row(*second), FreshRow(all));
}

TEST_F(BranchingTest, AFullCacheIsAnErrorAndNothingIsLost) {
  EngineOptions options = Options();
  options.max_sequences = 1;
  Load(options);  // four blocks
  auto session = Open(Sampling(/*hash=*/false));
  ASSERT_TRUE(session->Append(Some(250, 13)).ok());
  ASSERT_TRUE(session->Evaluate().ok());
  auto fork = session->Fork();
  ASSERT_TRUE(fork.ok());
  ASSERT_TRUE((*fork)->Append(Some(1, 14)).ok());
  EXPECT_EQ((*fork)->Evaluate().code(), absl::StatusCode::kResourceExhausted);
  session.reset();  // then there is room: only the fork holds blocks
  EXPECT_TRUE((*fork)->Evaluate().ok());
  const std::vector<float> row = Row(**fork);
  const Tokens tokens = TokensOf(**fork);
  fork->reset();
  EXPECT_EQ(row, FreshRow(tokens));
}

// Makes checkpoints, regressions, forks and appends at random. Compares each leaf with a session
// that reads the same tokens afresh.
void BranchingTest::GoRandomWays(int steps, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::map<Tokens, std::vector<float>> fresh;
  struct Branch {
    std::unique_ptr<Session> session;
    std::map<int64_t, Tokens> points;
    Tokens tokens;
  };
  std::vector<Branch> branches;
  const int64_t free = engine_->prefix_counters().free_blocks;
  int compared = 0;
  for (int step = 0; step < steps; ++step) {
    if (branches.empty()) {
      Branch branch{Open(Sampling(below(2) == 0)), {}, {}};
      branch.tokens = Some(1 + below(90), static_cast<uint32_t>(below(3)));
      ASSERT_TRUE(branch.session->Append(branch.tokens).ok());
      branches.push_back(std::move(branch));
    }
    const size_t which = below(branches.size());
    Branch& b = branches[which];
    const size_t kind = below(12);
    if (kind < 2) {
      const auto t = b.session->Checkpoint();
      ASSERT_TRUE(t.ok());
      b.points[*t] = b.tokens;
    } else if (kind < 4 && !b.points.empty()) {
      auto point = b.points.begin();
      std::advance(point, static_cast<ptrdiff_t>(below(b.points.size())));
      ASSERT_TRUE(b.session->Regress(point->first).ok());
      b.tokens = point->second;
      b.points.erase(std::next(point), b.points.end());
    } else if (kind < 5 && branches.size() < 6) {
      auto fork = b.session->Fork();
      ASSERT_TRUE(fork.ok());
      Branch made{*std::move(fork), {}, b.tokens};
      branches.push_back(std::move(made));
    } else if (kind < 6 && branches.size() > 1) {
      branches.erase(branches.begin() + static_cast<ptrdiff_t>(which));
    } else if (kind < 7 && b.tokens.size() > 2) {
      const size_t n = 1 + below(b.tokens.size() - 1);
      b.session->Truncate(static_cast<int64_t>(n));
      b.tokens.resize(n);
      std::erase_if(b.points, [&](const auto& p) { return p.second.size() > n; });
    } else {
      const Tokens more = Some(1 + below(30), static_cast<uint32_t>(below(1000)));
      if (b.tokens.size() + more.size() > 240) {
        branches.erase(branches.begin() + static_cast<ptrdiff_t>(which));
        continue;
      }
      ASSERT_TRUE(b.session->Append(more).ok());
      b.tokens.insert(b.tokens.end(), more.begin(), more.end());
      if (below(3) == 0) {  // all together
        std::vector<Session*> all;
        for (Branch& each : branches) all.push_back(each.session.get());
        ASSERT_TRUE(EvaluateTogether(all).ok());
      }
    }
    if (below(4) != 0 || which >= branches.size()) continue;
    Branch& seen = branches[which];
    ASSERT_EQ(TokensOf(*seen.session), seen.tokens);
    ASSERT_TRUE(seen.session->Evaluate().ok());
    const auto [known, is_new] = fresh.try_emplace(seen.tokens);
    if (is_new && branches.size() == 6) {  // room for one more
      branches.erase(branches.begin() + static_cast<ptrdiff_t>(which == 0 ? 1 : 0));
      fresh.erase(known);
      continue;
    }
    if (is_new) known->second = FreshRow(known->first);
    ASSERT_EQ(Row(*seen.session), known->second) << "step " << step;
    ++compared;
  }
  EXPECT_GT(compared, steps / 12);
  branches.clear();
  EXPECT_EQ(engine_->prefix_counters().free_blocks, free);
}

TEST_F(BranchingTest, RandomWaysEqualFreshRuns) {
  GoRandomWays(std::getenv("TRINE_LONG") != nullptr ? 10000 : 1500, 20261117);
}

class SplitBranchingTest : public BranchingTest {
 protected:
  EngineOptions Split(const std::string& faults = "") {
    EngineOptions options = Options();
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf("several0:1,cpu:2,several1:1");
    options.faults = faults;
    options.readmission.first = std::chrono::hours(1);
    return options;
  }
};

TEST_F(SplitBranchingTest, RandomWaysEqualFreshRuns) {
  Load(Split());
  GoRandomWays(std::getenv("TRINE_LONG") != nullptr ? 4000 : 600, 7);
}

// Devices share rows of a matmul; the blocks of a layer are on one of them.
TEST_F(SplitBranchingTest, InRowModeToo) {
  EngineOptions options = Split();
  options.placement.split = SplitOf("cpu:2,several0:2");
  options.placement.mode = SplitMode::kRow;
  Load(options);
  GoRandomWays(300, 8);
}

// A device is lost while branches are open: checkpoints from before are still good, and so are
// their logits.
TEST_F(SplitBranchingTest, BranchesOutliveADevice) {
  const Tokens prompt = Some(100, 20);
  std::vector<Tokens> expected;
  {
    auto session = Open(Sampling());
    ASSERT_TRUE(session->Append(prompt).ok());
    expected.push_back(Go(session.get(), 30));
    expected.push_back(Go(session.get(), 30));
  }
  for (const char* faults : {"several0:lost@token=3", "several1:lost@token=20", "cpu:oom@run=9",
                             "several0:lost@token=12;several1:lost@token=33"}) {
    SCOPED_TRACE(faults);
    Load(Split(faults));
    auto session = Open(Sampling());
    ASSERT_TRUE(session->Append(prompt).ok());
    ASSERT_TRUE(session->Evaluate().ok());
    const auto begin = session->Checkpoint();
    EXPECT_EQ(Go(session.get(), 30), expected[0]);
    const auto middle = session->Checkpoint();
    ASSERT_TRUE(begin.ok() && middle.ok());
    auto fork = session->Fork();
    ASSERT_TRUE(fork.ok());
    EXPECT_EQ(Go(session.get(), 30), expected[1]);
    EXPECT_EQ(Go(fork->get(), 30), expected[1]);
    ASSERT_TRUE(session->Regress(*middle).ok());
    EXPECT_EQ(Go(session.get(), 30), expected[1]);
    ASSERT_TRUE(session->Regress(*begin).ok());
    EXPECT_EQ(Go(session.get(), 30), expected[0]);
    EXPECT_GT(engine_->placements(), 1u);
  }
}

}  // namespace
}  // namespace trine
