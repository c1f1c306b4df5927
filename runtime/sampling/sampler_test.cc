#include "runtime/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "runtime/sampling/test_oracle.h"

namespace trine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Sampler Make(const SamplerOptions& options, int32_t vocab) {
  absl::StatusOr<Sampler> sampler = Sampler::Create(options, vocab);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *std::move(sampler);
}

float Pick(std::initializer_list<float> values, quant::Random* random) {
  return values.begin()[random->Below(static_cast<int64_t>(values.size()))];
}

// Returns options at their edges and in the middle, with stages in any order and some left out.
SamplerOptions RandomOptions(int32_t vocab, quant::Random* random) {
  SamplerOptions o;
  o.seed = random->Next();
  o.temp = Pick({0.0f, 1e-7f, 0.01f, 0.8f, 1.0f, 1.5f, 100.0f, 1e6f}, random);
  o.top_k = static_cast<int32_t>(Pick({0, 1, 5, 40, 1000}, random));
  o.top_p = Pick({0.0f, 0.5f, 0.95f, 1.0f}, random);
  o.min_p = Pick({0.0f, 1e-30f, 0.05f, 0.5f, 1.0f}, random);
  o.typical_p = Pick({0.0f, 0.2f, 0.9f, 1.0f, 1.0f}, random);
  o.repeat_last_n = static_cast<int32_t>(Pick({-1, 0, 1, 7, 64}, random));
  o.repeat_penalty = Pick({1.0f, 1.1f, 0.9f, 3.0f}, random);
  o.frequency_penalty = Pick({0.0f, 0.3f, -0.2f}, random);
  o.presence_penalty = Pick({0.0f, 0.5f, -0.5f}, random);
  o.mirostat = random->Below(5) == 0 ? 2 : 0;
  o.mirostat_tau = Pick({0.0f, 3.0f, 5.0f}, random);
  o.min_keep = static_cast<int32_t>(Pick({0, 0, 1, 3}, random));
  for (int64_t i = random->Below(4); i > 0; --i) {
    const auto token = static_cast<int32_t>(random->Below(vocab));
    o.logit_bias.push_back({token, Pick({1.0f, -3.0f, kInfinity, -kInfinity, 1e-40f}, random)});
  }
  for (size_t i = o.stages.size(); i > 1; --i) {
    const auto j = static_cast<size_t>(random->Below(static_cast<int64_t>(i)));
    std::swap(o.stages[i - 1], o.stages[j]);
  }
  o.stages.resize(static_cast<size_t>(random->Below(3) == 0 ? random->Below(7) : 6));
  return o;
}

void ExpectEqualsOracle(int rounds) {
  quant::Random random(21);
  for (int round = 0; round < rounds; ++round) {
    const auto vocab = static_cast<int32_t>(Pick({1, 2, 33, 300, 2500}, &random));
    const SamplerOptions options = RandomOptions(vocab, &random);
    if (!Validate(options, vocab).ok()) continue;  // every token banned
    Sampler sampler = Make(options, vocab);
    OracleSampler oracle(options);
    std::vector<uint32_t> mask(static_cast<size_t>(vocab + 31) / 32);
    for (int i = 0; i < 8; ++i) {
      const RowShape shape = kRowShapes[random.Below(std::size(kRowShapes))];
      const std::vector<float> row = RandomRow(shape, vocab, &random);
      for (uint32_t& word : mask) word = static_cast<uint32_t>(random.Next() | random.Next());
      const bool masked = random.Below(3) == 0;
      const std::span<const uint32_t> allowed = masked ? mask : std::span<const uint32_t>();
      const int32_t want = oracle.Sample(row, allowed);
      ASSERT_EQ(sampler.Sample(row, allowed), want)
          << "round " << round << ", token " << i << ", " << StageOrderText(options.stages);
      ASSERT_EQ(sampler.state().mirostat_mu, oracle.mu());
      const int32_t accepted = want >= 0 ? want : 0;
      sampler.Accept(accepted);
      oracle.Accept(accepted);
    }
  }
}

TEST(SamplerTest, EqualsItsDefinition) { ExpectEqualsOracle(1500); }

TEST(SamplerTest, EqualsItsDefinitionWithDenormalsFlushed) {
  const quant::ScopedFlushToZero flush;
  ExpectEqualsOracle(500);
}

// Expects draws to follow the distribution `want`, which binary64 and libm compute.
void ExpectChiSquare(const SamplerOptions& options, const std::vector<float>& row,
                     const std::vector<double>& want) {
  Sampler sampler = Make(options, static_cast<int32_t>(row.size()));
  std::vector<int> seen(row.size(), 0);
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) ++seen[static_cast<size_t>(sampler.Sample(row))];
  double sum = 0.0, chi_square = 0.0;
  int classes = 0;
  for (const double w : want) sum += w;
  for (size_t i = 0; i < row.size(); ++i) {
    const double expected = kDraws * want[i] / sum;
    if (expected == 0.0) {
      EXPECT_EQ(seen[i], 0) << "token " << i;
      continue;
    }
    ++classes;
    chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  // The mean is classes - 1, the standard deviation sqrt(2 (classes - 1)). Allows four deviations.
  EXPECT_LT(chi_square, classes - 1 + 4.0 * std::sqrt(2.0 * (classes - 1)));
  EXPECT_GT(chi_square, 0.0);
}

TEST(SamplerTest, DrawsFollowTheDistribution) {
  const std::vector<float> row = {1.0f, 2.0f, 0.5f, 2.0f, -1.0f, 3.0f, 0.0f, 1.5f};
  SamplerOptions options;
  options.stages = {};
  std::vector<double> want;
  for (const float x : row) want.push_back(std::exp(double{x}));
  ExpectChiSquare(options, row, want);

  options.stages = {SamplerStage::kTemperature};
  options.temp = 2.0f;
  options.seed = 77;
  want.clear();
  for (const float x : row) want.push_back(std::exp(double{x} / 2.0));
  ExpectChiSquare(options, row, want);

  // min_p of e^-1.5 keeps candidates within 1.5 of the best; top_k 3 of those: tokens 5, 1, 3.
  options = {};
  options.seed = 5;
  options.temp = 1.0f;
  options.min_p = 0.2231f;
  options.top_k = 3;
  options.top_p = 1.0f;
  want.assign(row.size(), 0.0);
  for (const size_t i : {1, 3, 5}) want[i] = std::exp(double{row[i]});
  ExpectChiSquare(options, row, want);
}

TEST(SamplerTest, GreedyTakesTheBestAndTheLowestOfEqualOnes) {
  SamplerOptions options;
  options.temp = 0.0f;
  Sampler sampler = Make(options, 6);
  const std::vector<float> row = {0.0f, 4.0f, 1.0f, 4.0f, -1.0f, 4.0f};
  EXPECT_EQ(sampler.Sample(row), 1);
  const std::vector<uint32_t> allowed = {0b111101};
  EXPECT_EQ(sampler.Sample(row, allowed), 3);
  const std::vector<uint32_t> none = {0};
  EXPECT_EQ(sampler.Sample(row, none), kNoToken);
  EXPECT_EQ(sampler.state().draws, 3u);  // each token takes a draw, used or not
}

TEST(SamplerTest, GreedyAfterTypicalTakesTheBestThatIsLeft) {
  SamplerOptions options;
  options.temp = 0.0f;
  options.typical_p = 0.01f;
  Sampler sampler = Make(options, 100);
  // A likely token among many: its surprise is far from the mean, so typical sampling drops it.
  std::vector<float> row(100, 1.0f);
  row[7] = 4.0f;
  EXPECT_EQ(sampler.Sample(row), 0);
}

TEST(SamplerTest, SeedDecidesAndTheDrawNumberToo) {
  const std::vector<float> row(1000, 0.0f);
  SamplerOptions options;
  options.stages = {};
  std::map<int32_t, int> firsts;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    options.seed = seed;
    Sampler a = Make(options, 1000), b = Make(options, 1000);
    const int32_t first = a.Sample(row);
    ++firsts[first];
    EXPECT_EQ(b.Sample(row), first);
    EXPECT_EQ(a.Sample(row), b.Sample(row));
  }
  EXPECT_GT(firsts.size(), 40u);
}

TEST(SamplerTest, BiasBansAndForces) {
  SamplerOptions options;
  options.logit_bias = {{2, -kInfinity}, {4, kInfinity}};
  Sampler sampler = Make(options, 5);
  const std::vector<float> row = {0.0f, 1.0f, 90.0f, 2.0f, -30.0f};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sampler.Sample(row), 4);
  options.logit_bias = {{2, -kInfinity}, {2, kInfinity}};
  options.temp = 0.0f;
  sampler = Make(options, 5);
  EXPECT_EQ(sampler.Sample(row), 3);  // a banned token stays banned
}

TEST(SamplerTest, PenaltiesReachAsFarAsTheWindow) {
  SamplerOptions options;
  options.temp = 0.0f;
  options.presence_penalty = 10.0f;
  const std::vector<float> row = {5.0f, 4.0f, 3.0f, 2.0f};
  for (const int32_t window : {0, 1, 2, -1}) {
    options.repeat_last_n = window;
    Sampler sampler = Make(options, 4);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 4; ++i) {
      tokens.push_back(sampler.Sample(row));
      sampler.Accept(tokens.back());
    }
    const std::map<int32_t, std::vector<int32_t>> want = {
        {0, {0, 0, 0, 0}}, {1, {0, 1, 0, 1}}, {2, {0, 1, 2, 0}}, {-1, {0, 1, 2, 3}}};
    EXPECT_EQ(tokens, want.at(window)) << window;
  }
}

TEST(SamplerTest, RepeatPenaltyLowersBothSigns) {
  SamplerOptions options;
  options.temp = 0.0f;
  options.repeat_penalty = 2.0f;
  Sampler sampler = Make(options, 2);
  sampler.Accept(0);
  EXPECT_EQ(sampler.Sample(std::vector<float>{3.0f, 1.6f}), 1);    // 1.5 below 1.6
  EXPECT_EQ(sampler.Sample(std::vector<float>{-1.0f, -1.9f}), 1);  // -2 below -1.9
  EXPECT_EQ(sampler.Sample(std::vector<float>{3.4f, 1.6f}), 0);
  sampler.Accept(-5);  // no token: ignored
  sampler.Accept(2);
  EXPECT_EQ(sampler.state().window.distinct(), 1);
}

TEST(SamplerTest, ForksAndRollsBack) {
  quant::Random random(31);
  SamplerOptions options;
  options.repeat_penalty = 1.3f;
  options.mirostat = 2;
  Sampler sampler = Make(options, 400);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 30; ++i) rows.push_back(RandomRow(RowShape::kModel, 400, &random));
  const auto generate = [&](Sampler& s, size_t first, size_t last) {
    std::vector<int32_t> tokens;
    for (size_t i = first; i < last; ++i) {
      tokens.push_back(s.Sample(rows[i]));
      s.Accept(tokens.back());
    }
    return tokens;
  };
  const std::vector<int32_t> begin = generate(sampler, 0, 10);
  const SamplerState state = sampler.state();
  Sampler fork = sampler;
  const std::vector<int32_t> end = generate(sampler, 10, 30);
  EXPECT_EQ(generate(fork, 10, 30), end);
  sampler.Restore(state);
  EXPECT_EQ(generate(sampler, 10, 30), end);
  sampler.Restore(state);
  sampler.Reseed(99);
  EXPECT_NE(generate(sampler, 10, 30), end);
  sampler.Reseed(0);
  sampler.Reset();
  EXPECT_EQ(generate(sampler, 0, 10), begin);
  fork = sampler;
  EXPECT_EQ(generate(fork, 10, 30), end);
}

TEST(SamplerTest, MirostatHoldsTheSurprise) {
  quant::Random random(41);
  SamplerOptions options;
  options.mirostat = 2;
  options.temp = 1.0f;
  for (const float tau : {2.0f, 5.0f}) {
    options.mirostat_tau = tau;
    Sampler sampler = Make(options, 5000);
    double surprise = 0.0;
    constexpr int kTokens = 400, kWarmUp = 100;
    for (int i = 0; i < kTokens; ++i) {
      const std::vector<float> row = RandomRow(RowShape::kModel, 5000, &random);
      const double before = sampler.state().mirostat_mu;
      sampler.Sample(row);
      // mu moved by eta (surprise - tau).
      const double observed = tau - (sampler.state().mirostat_mu - before) / options.mirostat_eta;
      if (i >= kWarmUp) surprise += observed / (kTokens - kWarmUp);
    }
    EXPECT_NEAR(surprise, tau, 0.15);
  }
}

TEST(SamplerTest, LogprobsAreTheModelsOwn) {
  SamplerOptions options;
  options.temp = 0.0f;
  options.logit_bias = {{3, 50.0f}};
  Sampler sampler = Make(options, 4);
  const std::vector<float> row = {1.0f, 2.0f, 3.0f, 0.0f};
  SampleResult result;
  sampler.SampleWithLogprobs(row, {}, 2, &result);
  double sum = 0.0;
  for (const float x : row) sum += std::exp(double{x});
  EXPECT_EQ(result.token, 3);
  EXPECT_NEAR(result.logprob, -std::log(sum), 1e-6);
  ASSERT_EQ(result.top.size(), 2u);
  EXPECT_EQ(result.top[0].token, 2);
  EXPECT_NEAR(result.top[0].logprob, 3.0 - std::log(sum), 1e-6);
  EXPECT_EQ(result.top[1].token, 1);
  sampler.SampleWithLogprobs(row, std::vector<uint32_t>{0}, 0, &result);
  EXPECT_EQ(result.token, kNoToken);
  EXPECT_TRUE(result.top.empty());
}

TEST(LogprobsTest, TopIsInOrderWithTies) {
  quant::Random random(51);
  for (const RowShape shape : kRowShapes) {
    const std::vector<float> row = RandomRow(shape, 700, &random);
    const LogSoftmax softmax(row);
    std::vector<TokenCandidate> want;
    for (size_t i = 0; i < row.size(); ++i) want.push_back({row[i], static_cast<int32_t>(i)});
    std::sort(want.begin(), want.end(), RanksBefore);
    for (const int32_t n : {1, 20, 700, 5000}) {
      std::vector<TokenLogprob> top;
      TopLogprobs(row, softmax, n, &top);
      ASSERT_EQ(top.size(), static_cast<size_t>(std::min(n, 700)));
      for (size_t i = 0; i < top.size(); ++i) {
        ASSERT_EQ(top[i].token, want[i].token);
        ASSERT_EQ(top[i].logprob, softmax.Of(want[i].logit));
      }
    }
    double sum = 0.0;
    for (const float x : row) sum += std::exp(softmax.Of(x));
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
}

}  // namespace
}  // namespace trine
