// Tests reranking during generation against the same arithmetic on sequences that are read one by
// one from their beginning.
#include "runtime/engine/rerank.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "runtime/constraint/mask/constraint.h"
#include "runtime/engine/generate.h"
#include "runtime/head/head.h"
#include "runtime/head/test_head.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using Tokens = std::vector<int32_t>;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 128;

class RerankTest : public testing::Test {
 protected:
  RerankTest() : file_(Model(1)) {}

  static std::vector<std::byte> Model(uint64_t seed) {
    TinyModelSpec spec;
    spec.n_layers = 4;
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = kWidth;
    spec.n_ff = 256;
    spec.seed = seed;
    return MakeTinyModel(spec).ToBytes();
  }
  EngineOptions Options() {
    EngineOptions options = TestOptions(file_.path());
    options.context = 256;
    options.branches = 8;
    options.batch_tokens = 48;
    options.threads = 1;
    options.hidden_rows = true;
    return options;
  }
  EngineOptions Split(const std::string& split = "several0:1,cpu:2,several1:1") {
    EngineOptions options = Options();
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf(split);
    options.readmission.first = std::chrono::hours(1);
    return options;
  }
  void Load(const EngineOptions& options) {
    engine_ = MustLoad(options);
    ASSERT_NE(engine_, nullptr);
    free_ = engine_->prefix_counters().free_blocks;
  }
  void SetUp() override { Load(Options()); }
  // Nothing may be held at the end.
  void TearDown() override {
    if (engine_ == nullptr) return;
    EXPECT_EQ(engine_->prefix_counters().free_blocks, free_);
  }

  // Makes a head with a known direction that means nothing.
  Head MakeHead(HeadKind kind = HeadKind::kLabel, double bias = 0.3) const {
    Head head = TestHead();
    head.kind = kind;
    if (kind == HeadKind::kBranch) head.labels.clear();
    head.model = IdentityOf(engine_->file(), engine_->config());
    head.linear = {};
    Noise noise(5);
    for (int64_t i = 0; i < kWidth; ++i) {
      head.linear.mean.push_back(0.01 * noise.Next());
      head.linear.scale.push_back(1.5 + noise.Next());
      head.linear.weights.push_back(noise.Next());
    }
    head.linear.bias = bias;
    return head;
  }
  std::shared_ptr<const Rerank> Make(const RerankOptions& options, HeadKind kind = HeadKind::kLabel,
                                     double bias = 0.3) const {
    auto rerank = Rerank::Create(*engine_, MakeHead(kind, bias), options);
    EXPECT_TRUE(rerank.ok()) << rerank.status();
    return rerank.ok() ? *std::move(rerank) : nullptr;
  }
  static SessionOptions Greedy() {
    SessionOptions options;
    options.sampler.temp = 0;
    options.ignore_eos = true;
    options.logits_hash = true;
    return options;
  }
  static SessionOptions Sampling() {
    SessionOptions options = Greedy();
    options.sampler.temp = 0.9F;
    options.sampler.seed = 11;
    options.sampler.repeat_penalty = 1.1F;
    return options;
  }
  std::unique_ptr<Session> Open(const SessionOptions& options, const Tokens& prompt) {
    auto session = Session::Create(engine_.get(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Append(prompt).ok());
    return *std::move(session);
  }
  Generation Go(Session* session, std::shared_ptr<const Rerank> rerank, int64_t count = 24) {
    GenerateOptions options;
    options.max_tokens = count;
    options.rerank = std::move(rerank);
    Generation result;
    const absl::Status status = Generate(session, options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }
  Tokens TokensOf(const SessionOptions& options, const Tokens& prompt,
                  std::shared_ptr<const Rerank> rerank, int64_t count = 24) {
    return Go(Open(options, prompt).get(), std::move(rerank), count).tokens;
  }
  Tokens Some(size_t count, uint32_t seed) const {
    std::mt19937 random(seed);
    Tokens tokens(count);
    for (int32_t& t : tokens) {
      t = static_cast<int32_t>(random() % static_cast<uint32_t>(engine_->config().n_vocab));
    }
    return tokens;
  }
  // Returns the row of the last token, in a sequence that has read nothing else.
  std::vector<float> FreshRow(const Tokens& tokens, bool hidden) {
    const auto sequence = engine_->NewSequence();
    sequence->set_hidden(hidden);
    EXPECT_TRUE(sequence->Append(tokens).ok());
    Sequence* const one[] = {sequence.get()};
    EXPECT_TRUE(engine_->Evaluate(one).ok());
    return {sequence->logits().begin(), sequence->logits().end()};
  }
  std::string FreshHash(const Tokens& tokens) { return HashOf(engine_.get(), tokens); }

  // Computes by hand what greedy sampling chooses.
  Tokens ByHand(Tokens tokens, const Head& head, const RerankOptions& options, int count) {
    Tokens chosen;
    for (int i = 0; i < count; ++i) {
      const std::vector<float> logits = FreshRow(tokens, /*hidden=*/false);
      Tokens order(logits.size());
      for (size_t t = 0; t < order.size(); ++t) order[t] = static_cast<int32_t>(t);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
      });
      order.resize(static_cast<size_t>(options.top));
      std::vector<double> values;
      for (const int32_t candidate : order) {
        Tokens with = tokens;
        with.push_back(candidate);
        const std::vector<float> row = FreshRow(with, /*hidden=*/true);
        double s = head.linear.bias;
        for (size_t k = 0; k < row.size(); ++k) {
          s += head.linear.weights[k] *
               ((static_cast<double>(row[k]) - head.linear.mean[k]) / head.linear.scale[k]);
        }
        values.push_back(s);
      }
      const double best_value = *std::max_element(values.begin(), values.end());
      size_t best = 0;
      float best_logit = 0;
      for (size_t k = 0; k < order.size(); ++k) {
        double s = values[k];
        if (head.kind == HeadKind::kBranch) s -= best_value;
        s = std::min(std::max(s, -options.limit), options.limit);
        const auto logit = static_cast<float>(
            static_cast<double>(logits[static_cast<size_t>(order[k])]) + options.weight * s);
        if (k != 0 && logit <= best_logit) continue;
        best = k;
        best_logit = logit;
      }
      tokens.push_back(order[best]);
      chosen.push_back(order[best]);
    }
    return chosen;
  }

  TempFile file_;
  std::unique_ptr<Engine> engine_;
  int64_t free_ = 0;
};

TEST_F(RerankTest, WithoutWeightItIsPlainGeneration) {
  EngineOptions two = Options();
  two.max_sequences = 2;
  Load(two);
  const auto rerank = Make({.top = 8, .weight = 0});
  for (const size_t prompt : {size_t{1}, size_t{40}, size_t{63}, size_t{64}, size_t{65}}) {
    for (const SessionOptions& options : {Greedy(), Sampling()}) {
      auto plain = Open(options, Some(prompt, 1));
      auto reranked = Open(options, Some(prompt, 1));
      const Generation expected = Go(plain.get(), nullptr, 70);
      const Generation got = Go(reranked.get(), rerank, 70);
      EXPECT_EQ(got.tokens, expected.tokens);
      EXPECT_EQ(got.text, expected.text);
      EXPECT_EQ(got.reranked_tokens, 70);
      EXPECT_EQ(got.rerank_candidates, 8 * 70);
      EXPECT_EQ(expected.reranked_tokens, 0);
      // The session is where it would have been without reranking.
      EXPECT_EQ(reranked->logits_hash().Text(), plain->logits_hash().Text());
      EXPECT_EQ(reranked->sequence().pending(), plain->sequence().pending());
      EXPECT_EQ(Go(reranked.get(), nullptr, 20).tokens, Go(plain.get(), nullptr, 20).tokens);
      EXPECT_EQ(reranked->logits_hash().Text(), plain->logits_hash().Text());
    }
  }
}

TEST_F(RerankTest, ChoosesAsTheArithmeticSays) {
  const Tokens prompt = Some(50, 2);
  const Tokens plain = TokensOf(Greedy(), prompt, nullptr);
  for (const RerankOptions& options :
       {RerankOptions{.top = 4, .weight = 0.5}, RerankOptions{.top = 8, .weight = -0.7},
        RerankOptions{.top = 3, .weight = 2, .limit = 1.0}}) {
    auto session = Open(Greedy(), prompt);
    const Tokens got = Go(session.get(), Make(options)).tokens;
    EXPECT_EQ(got, ByHand(prompt, MakeHead(), options, 24));
    EXPECT_NE(got, plain);
    ASSERT_TRUE(session->Evaluate().ok());
    EXPECT_EQ(session->logits_hash().Text(), FreshHash(session->sequence().tokens()));
  }
}

// Its log-odds have no zero: candidates are compared however far from zero they are.
TEST_F(RerankTest, AHeadForBranchesComparesCandidates) {
  const Tokens prompt = Some(50, 2);
  const RerankOptions options = {.top = 6, .weight = 1};
  const Tokens expected = ByHand(prompt, MakeHead(HeadKind::kBranch, /*bias=*/100), options, 16);
  EXPECT_EQ(TokensOf(Greedy(), prompt, Make(options, HeadKind::kBranch, 100), 16), expected);
  EXPECT_EQ(TokensOf(Greedy(), prompt, Make(options, HeadKind::kBranch, -100), 16), expected);
  EXPECT_NE(expected, TokensOf(Greedy(), prompt, nullptr, 16));
}

TEST_F(RerankTest, IsTheSameWhereverItRuns) {
  const Tokens prompt = Some(60, 3);
  const RerankOptions options = {.top = 5, .weight = 0.8};
  std::vector<std::string> said;
  EngineOptions two = Options(), rows = Split("cpu:2,several0:2"), roomy = Options(),
                narrow = Options();
  two.threads = 2;
  rows.placement.mode = SplitMode::kRow;
  roomy.max_sequences = 6;
  narrow.branches = 5;
  narrow.batch_tokens = 3;
  for (const EngineOptions& each :
       {Options(), two, Split(), Split("cpu:1,several0:3"), rows, roomy, narrow}) {
    Load(each);
    for (const SessionOptions& how : {Greedy(), Sampling()}) {
      auto session = Open(how, prompt);
      const Generation result = Go(session.get(), Make(options), 40);
      said.push_back(session->logits_hash().Text() + " " + result.text);
    }
  }
  ASSERT_EQ(said.size(), 14u);
  for (size_t i = 2; i < said.size(); ++i) EXPECT_EQ(said[i], said[i % 2]) << i / 2;
}

TEST_F(RerankTest, CandidatesShareAPassAndTheChosenOneIsNotReadAgain) {
  auto session = Open(Greedy(), Some(20, 4));
  ASSERT_TRUE(session->Evaluate().ok());
  const auto counters = [&] { return engine_->segments().front(); };
  const SegmentCounters before = counters();
  Go(session.get(), Make({.top = 8}), 30);
  EXPECT_EQ(counters().stage.jobs - before.stage.jobs, 30u);
  EXPECT_EQ(counters().tokens - before.tokens, 30u * 8);
}

TEST_F(RerankTest, SessionsTogetherAreAsAlone) {
  EngineOptions options = Options();
  options.max_sequences = 3;
  options.branches = 24;
  for (const bool split : {false, true}) {
    if (split) {
      const EngineOptions places = Split();
      options.plugins = places.plugins;
      options.placement.split = places.placement.split;
    }
    Load(options);
    const auto rerank = Make({.top = 8, .weight = 0.8});
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> each(3);
    std::vector<Generation> results(3);
    for (size_t i = 0; i < 3; ++i) {
      sessions.push_back(Open(Sampling(), Some(30 + 20 * i, 5)));
      pointers.push_back(sessions.back().get());
      each[i].max_tokens = 20 + static_cast<int64_t>(i);
      if (i != 1) each[i].rerank = rerank;  // one of them does not
    }
    ASSERT_TRUE(GenerateTogether(pointers, each, results).ok());
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(results[i].tokens,
                TokensOf(Sampling(), Some(30 + 20 * i, 5), each[i].rerank, each[i].max_tokens));
    }
  }
}

TEST_F(RerankTest, LogprobsAreTheModels) {
  auto session = Open(Greedy(), Some(30, 6));
  GenerateOptions options;
  options.max_tokens = 8;
  options.logprobs = 2;
  options.rerank = Make({.top = 4, .weight = 5});
  Generation result;
  ASSERT_TRUE(Generate(session.get(), options, &result).ok());
  Tokens tokens = Some(30, 6);
  bool other = false;
  for (const SampleResult& token : result.logprobs) {
    const std::vector<float> row = FreshRow(tokens, /*hidden=*/false);
    const LogSoftmax softmax(row);
    EXPECT_EQ(token.logprob, softmax.Of(row[static_cast<size_t>(token.token)]));
    EXPECT_EQ(token.top.at(0).logprob, softmax.Of(*std::max_element(row.begin(), row.end())));
    other = other || token.top.at(0).token != token.token;
    tokens.push_back(token.token);
  }
  EXPECT_TRUE(other) << "the head changed nothing";
}

// Other sessions may have the blocks that candidates need: it goes on when they give them back.
TEST_F(RerankTest, AFullCacheIsAnErrorAndNothingIsLost) {
  const auto rerank = Make({.top = 8, .weight = 0.8});
  const Tokens prompt = Some(60, 16), expected = TokensOf(Greedy(), prompt, rerank, 20);
  auto other = Open(Greedy(), Some(200, 17));
  ASSERT_TRUE(other->Evaluate().ok());
  auto session = Open(Greedy(), prompt);
  GenerateOptions options;
  options.max_tokens = 20;
  options.rerank = rerank;
  Generation result;
  EXPECT_TRUE(absl::IsResourceExhausted(Generate(session.get(), options, &result)));
  other.reset();
  Tokens tokens = result.tokens;
  const Generation rest = Go(session.get(), rerank, 20 - result.n_tokens);
  tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(tokens, expected);
  ASSERT_TRUE(session->Evaluate().ok());
  EXPECT_EQ(session->logits_hash().Text(), FreshHash(session->sequence().tokens()));
}

// The cache has the context's blocks, and one for each candidate.
TEST_F(RerankTest, GoesOnUntilTheContextIsFull) {
  const auto rerank = Make({.top = 8, .weight = 0.8});
  auto session = Open(Greedy(), Some(100, 7));
  const Generation full = Go(session.get(), rerank, -1);
  EXPECT_EQ(full.finish, FinishReason::kContextFull);
  EXPECT_EQ(session->sequence().size(), 256);
  EXPECT_EQ(full.reranked_tokens, 156);
  EXPECT_EQ(session->logits_hash().Text(), FreshHash(session->sequence().tokens()));
  session.reset();

  // Compare shifts with a session that begins with what each shift leaves.
  session = Open(Greedy(), Some(100, 7));
  GenerateOptions options;
  options.max_tokens = 156 + 140;
  options.context_shift = true;
  options.rerank = rerank;
  Generation result;
  ASSERT_TRUE(Generate(session.get(), options, &result).ok());
  EXPECT_EQ(result.context_shifts, 2);
  EXPECT_EQ(Tokens(result.tokens.begin(), result.tokens.begin() + 156), full.tokens);
  Tokens left = Some(100, 7);
  left.insert(left.end(), full.tokens.begin(), full.tokens.end());
  left.erase(left.begin(), left.begin() + 128);
  session.reset();
  EXPECT_EQ(Tokens(result.tokens.begin() + 156, result.tokens.begin() + 156 + 100),
            TokensOf(Greedy(), left, rerank, 100));
}

TEST_F(RerankTest, EndsWhereTextsEnd) {
  const Tokens prompt = Some(30, 8);
  const auto rerank = Make({.top = 8, .weight = 0.8});
  const Generation whole = Go(Open(Greedy(), prompt).get(), rerank, 40);
  ASSERT_GT(whole.text.size(), 8u);
  SessionOptions stops = Greedy();
  stops.stop = {whole.text.substr(6, 2)};
  const Generation stopped = Go(Open(stops, prompt).get(), rerank, 40);
  EXPECT_EQ(stopped.finish, FinishReason::kStopString);
  EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find(stops.stop[0])));

  // A token that ends the text can be one of the candidates, and be chosen.
  SessionOptions ends = Greedy();
  ends.ignore_eos = false;
  const int32_t end = engine_->tokenizer()->end_of_generation().front();
  ends.sampler.logit_bias = {{end, 1000.0F}};
  const Generation ended = Go(Open(ends, prompt).get(), rerank, 40);
  EXPECT_EQ(ended.finish, FinishReason::kEndOfText);
  EXPECT_EQ(ended.n_tokens, 0);

  GenerateOptions none;
  none.max_tokens = 0;
  none.rerank = rerank;
  Generation nothing;
  auto session = Open(Greedy(), prompt);
  ASSERT_TRUE(Generate(session.get(), none, &nothing).ok());
  EXPECT_EQ(nothing.finish, FinishReason::kLength);
  EXPECT_EQ(nothing.reranked_tokens, 0);
}

TEST_F(RerankTest, BannedTokensAreNoCandidates) {
  const Tokens prompt = Some(30, 9);
  const std::vector<float> row = FreshRow(prompt, /*hidden=*/false);
  TokenReranker order = *TokenReranker::Create({.top = 10});
  const std::span<const int32_t> best = order.Candidates(row);
  SessionOptions options = Greedy();
  for (size_t k = 0; k < 9; ++k) {
    options.sampler.logit_bias.push_back({best[k], -std::numeric_limits<float>::infinity()});
  }
  EXPECT_EQ(TokensOf(options, prompt, Make({.top = 1, .weight = 1}), 1), Tokens{best[9]});
}

TEST_F(RerankTest, KeepsToAGrammar) {
  const auto constraint =
      Constraint::FromGbnf(R"(root ::= [a-c]+ ";" [0-9]+ ".")", engine_->constraint_vocabulary());
  ASSERT_TRUE(constraint.ok()) << constraint.status();
  SessionOptions options = Greedy();
  options.ignore_eos = false;
  options.constraint = *constraint;
  std::vector<std::string> texts;
  for (const double weight : {0.0, 0.8, -0.8}) {
    const Generation result =
        Go(Open(options, Some(20, 10)).get(), Make({.top = 8, .weight = weight}), 30);
    EXPECT_TRUE(result.complete);
    EXPECT_THAT(result.text, ::testing::MatchesRegex("[abc]+;[0-9]+\\."));
    texts.push_back(result.text);
  }
  EXPECT_EQ(texts[0], Go(Open(options, Some(20, 10)).get(), nullptr, 30).text);
  EXPECT_NE(texts[1], texts[2]);
}

TEST_F(RerankTest, CanBeCancelledAtAnyMoment) {
  const Tokens prompt = Some(40, 11);
  for (const bool split : {false, true}) {
    Load(split ? Split() : Options());
    const auto rerank = Make({.top = 8, .weight = 0.8});
    const Tokens expected = TokensOf(Greedy(), prompt, rerank, 200);
    GenerateOptions options;
    options.max_tokens = 200;
    options.rerank = rerank;
    int cancelled = 0;
    for (int round = 0; round < 12; ++round) {
      auto session = Open(Greedy(), prompt);
      Generation result;
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(1700 * round));
        session->Cancel();
      });
      const absl::Status status = Generate(session.get(), options, &result);
      other.join();
      session->ClearCancel();
      ASSERT_TRUE(status.ok()) << status;
      cancelled += result.finish == FinishReason::kCancelled;
      EXPECT_EQ(result.tokens, Tokens(expected.begin(), expected.begin() + result.n_tokens));
      // It goes on as if nothing had happened.
      const int64_t more = std::min<int64_t>(200 - result.n_tokens, 5);
      EXPECT_EQ(
          Go(session.get(), rerank, more).tokens,
          Tokens(expected.begin() + result.n_tokens, expected.begin() + result.n_tokens + more));
    }
    EXPECT_GT(cancelled, 0);
    // Cancelled by the callback that receives a token.
    auto session = Open(Greedy(), prompt);
    GenerateOptions told = options;
    int seen = 0;
    told.on_token = [&](const SampleResult&) {
      if (++seen == 5) session->Cancel();
      return true;
    };
    Generation result;
    ASSERT_TRUE(Generate(session.get(), told, &result).ok());
    EXPECT_EQ(result.finish, FinishReason::kCancelled);
    EXPECT_EQ(result.n_tokens, 5);
  }
}

// Every fork would have to read the text again in blocks of its own, which don't exist.
TEST_F(RerankTest, OutlivesADevice) {
  const Tokens prompt = Some(100, 12);
  const Tokens expected = TokensOf(Sampling(), prompt, Make({.top = 8, .weight = 0.8}), 60);
  for (const char* faults : {"several0:lost@token=3", "several1:lost@token=20", "cpu:oom@run=9",
                             "several0:lost@token=12;several1:lost@token=33"}) {
    SCOPED_TRACE(faults);
    EngineOptions options = Split();
    options.faults = faults;
    Load(options);
    EXPECT_EQ(TokensOf(Sampling(), prompt, Make({.top = 8, .weight = 0.8}), 60), expected);
    EXPECT_GT(engine_->placements(), 1u);
  }
}

TEST_F(RerankTest, ForksKeepOutOfPrefixSpaces) {
  SessionOptions options = Greedy();
  options.logits_hash = false;
  options.prefix_space = "here";
  const Tokens prompt = Some(100, 13);
  const auto rerank = Make({.top = 8, .weight = 0.8});
  auto session = Open(options, prompt);
  const Tokens first = Go(session.get(), rerank, 60).tokens;
  session.reset();
  EXPECT_EQ(engine_->prefix_counters().held_blocks, 1) << "the prompt's";
  EXPECT_EQ(TokensOf(options, prompt, rerank, 60), first);
  free_ = engine_->prefix_counters().free_blocks;
  EXPECT_EQ(free_ + 1, engine_->prefix_counters().total_blocks);
}

TEST_F(RerankTest, WhatCannotBeIsSaid) {
  const auto refusal = [&](Head head, const RerankOptions& options) {
    return std::string(Rerank::Create(*engine_, std::move(head), options).status().message());
  };
  EXPECT_THAT(refusal(MakeHead(), {.top = 0}), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal(MakeHead(), {.top = 9}), HasSubstr("no room to read 9 candidates"));
  EXPECT_THAT(refusal(TestHead(), {.top = 4}), HasSubstr("another model"));
  const Head head = MakeHead();

  // The same but for its weights.
  const TempFile other(Model(2));
  EngineOptions options = Options();
  options.model_path = other.path();
  const auto second = MustLoad(options);
  const absl::Status fits = Rerank::Create(*second, head, {.top = 4}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(fits));
  EXPECT_THAT(std::string(fits.message()), HasSubstr("another model: metadata and weights"));
  // Another engine of the same model.
  auto session = Open(Greedy(), Some(5, 1));
  const auto third = MustLoad(Options());
  GenerateOptions generate;
  generate.rerank = *Rerank::Create(*third, head, {.top = 4});
  Generation result;
  EXPECT_TRUE(absl::IsInvalidArgument(Generate(session.get(), generate, &result)));
  session.reset();

  options = Options();
  options.hidden_rows = false;
  Load(options);
  EXPECT_THAT(refusal(head, {.top = 4}), HasSubstr("without rows of the hidden state"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(Greedy(), Some(5, 1))->HiddenRow().status()));
}

TEST_F(RerankTest, ASessionsHiddenRowIsThatOfItsLastToken) {
  auto session = Open(Greedy(), {});
  EXPECT_TRUE(absl::IsFailedPrecondition(session->HiddenRow().status()));
  Tokens tokens = Some(70, 14);
  ASSERT_TRUE(session->Append(tokens).ok());
  const auto row = [&] {
    const auto got = session->HiddenRow();
    EXPECT_TRUE(got.ok()) << got.status();
    return std::vector<float>(got->begin(), got->end());
  };
  const auto read = [&] { return engine_->segments().front().tokens; };
  EXPECT_EQ(row(), FreshRow(tokens, true));
  const uint64_t before = read();
  EXPECT_EQ(row(), row());
  EXPECT_EQ(read(), before) << "it was kept";
  const auto t = session->Checkpoint();
  const Tokens more = Some(5, 15);
  ASSERT_TRUE(session->Append(more).ok());
  tokens.insert(tokens.end(), more.begin(), more.end());
  EXPECT_EQ(row(), FreshRow(tokens, true));
  ASSERT_TRUE(session->Regress(*t).ok());
  tokens.resize(70);
  EXPECT_EQ(row(), FreshRow(tokens, true));
  EXPECT_EQ(session->logits_hash().Text(), FreshHash(tokens)) << "no row counts twice";
  session->Truncate(60);
  tokens.resize(60);
  EXPECT_EQ(row(), FreshRow(tokens, true));
}

}  // namespace
}  // namespace trine
