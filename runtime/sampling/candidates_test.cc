#include "runtime/sampling/candidates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "runtime/sampling/test_oracle.h"

namespace trine {
namespace {

std::vector<TokenCandidate> ListOf(Candidates& candidates) {
  const std::span<const TokenCandidate> list = candidates.Ordered();
  return {list.begin(), list.end()};
}

std::vector<TokenCandidate> ListOf(const OracleSampler& oracle) {
  std::vector<TokenCandidate> list;
  for (const OracleSampler::Entry& e : oracle.list()) list.push_back({e.logit, e.token});
  return list;
}

// Sizes around the blocks of the passes, the tiles of peaks and the size from which lists are
// sorted by digits.
constexpr int32_t kSizes[] = {1, 2, 31, 32, 33, 100, 256, 271, 1000, 5003};

struct Case {
  const char* name;
  SamplerOptions options;
  SamplerStage stage;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&](const char* name, SamplerStage stage, auto set) {
    for (const int32_t min_keep : {0, 5, 3000}) {
      SamplerOptions options;
      options.min_keep = min_keep;
      set(options);
      cases.push_back({name, options, stage});
    }
  };
  for (const int32_t k : {1, 2, 40, 999, 2500, 100000}) {
    add("top_k", SamplerStage::kTopK, [=](SamplerOptions& o) { o.top_k = k; });
  }
  for (const float p : {0.0f, 1e-6f, 0.3f, 0.5f, 0.95f, 0.999f, 0.9999999f}) {
    add("top_p", SamplerStage::kTopP, [=](SamplerOptions& o) { o.top_p = p; });
    add("typ_p", SamplerStage::kTypicalP, [=](SamplerOptions& o) { o.typical_p = p; });
  }
  for (const float p : {1e-14f, 1e-6f, 0.05f, 0.5f, 1.0f}) {
    add("min_p", SamplerStage::kMinP, [=](SamplerOptions& o) { o.min_p = p; });
  }
  return cases;
}

void ApplyTo(Candidates& candidates, const Case& c) {
  const int64_t min_keep = std::max(c.options.min_keep, 1);
  switch (c.stage) {
    case SamplerStage::kTopK:
      return candidates.KeepFirst(std::max<int64_t>(c.options.top_k, min_keep));
    case SamplerStage::kTopP:
      return candidates.KeepTopP(c.options.top_p, min_keep);
    case SamplerStage::kTypicalP:
      return candidates.KeepTypical(c.options.typical_p, min_keep);
    case SamplerStage::kMinP:
      return candidates.KeepWithin(
          static_cast<float>(-ExactLog(static_cast<double>(c.options.min_p))), min_keep);
    default:
      return;
  }
}

// Each truncation keeps what its definition says, both from a row and from a list.
TEST(CandidatesTest, TruncationsEqualTheirDefinition) {
  quant::Random random(11);
  for (const int32_t n : kSizes) {
    Candidates from_row(n), from_list(n);
    for (const RowShape shape : kRowShapes) {
      const std::vector<float> row = RandomRow(shape, n, &random);
      for (const Case& c : Cases()) {
        OracleSampler oracle(c.options);
        oracle.Load(row, {});
        oracle.Apply(c.stage);
        from_row.Load(row, {});
        ApplyTo(from_row, c);
        from_list.Load(row, {});
        (void)from_list.Ordered();
        ASSERT_FALSE(from_list.is_row());
        ApplyTo(from_list, c);
        const std::vector<TokenCandidate> want = ListOf(oracle);
        ASSERT_EQ(ListOf(from_row), want)
            << c.name << " of " << n << ", shape " << static_cast<int>(shape);
        ASSERT_EQ(ListOf(from_list), want) << c.name << " of a list of " << n;
      }
    }
  }
}

// Uses libm in binary64, not the contract's functions, on rows whose cuts are no close call.
TEST(CandidatesTest, TopPAndTypicalAgreeWithBinary64) {
  quant::Random random(12);
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> row = RandomRow(RowShape::kModel, 500, &random);
    std::vector<size_t> order(row.size());
    std::iota(order.begin(), order.end(), size_t{0});
    double sum = 0.0, entropy = 0.0;
    for (const float x : row) sum += std::exp(double{x});
    const auto p = [&](size_t i) { return std::exp(double{row[i]}) / sum; };
    for (size_t i = 0; i < row.size(); ++i) entropy -= p(i) * std::log(p(i));
    const auto expect_share = [&](double share, std::span<const TokenCandidate> kept) {
      double total = 0.0, last = 0.0;
      size_t n = 0;
      while (n < order.size() && total < share) total += last = p(order[n++]);
      if (total - share < 1e-5 || share - (total - last) < 1e-5) return;  // a close call
      std::vector<int32_t> want(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n));
      std::vector<int32_t> got;
      for (const TokenCandidate& c : kept) got.push_back(c.token);
      std::sort(want.begin(), want.end());
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, want);
    };
    Candidates candidates(500);
    candidates.Load(row, {});
    candidates.KeepTopP(0.9f, 1);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
    expect_share(0.9f, candidates.Ordered());

    candidates.Load(row, {});
    candidates.KeepTypical(0.6f, 1);
    const auto shift = [&](size_t i) { return std::abs(-std::log(p(i)) - entropy); };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shift(a) < shift(b); });
    expect_share(0.6f, candidates.Ordered());
  }
}

TEST(CandidatesTest, RowAndListDrawTheSame) {
  quant::Random random(13);
  for (const int32_t n : kSizes) {
    Candidates from_row(n), from_list(n);
    for (const RowShape shape : kRowShapes) {
      const std::vector<float> row = RandomRow(shape, n, &random);
      for (const uint64_t r : {uint64_t{0}, ~uint64_t{0}, random.Next(), random.Next()}) {
        from_row.Load(row, {});
        from_list.Load(row, {});
        const std::vector<TokenCandidate> list = ListOf(from_list);
        const Candidates::Drawn a = from_row.Draw(r), b = from_list.Draw(r);
        ASSERT_EQ(a.token, b.token);
        ASSERT_EQ(a.weight, b.weight);
        ASSERT_EQ(a.gap, b.gap);
        if (r == 0) {
          ASSERT_EQ(a.token, list.front().token);
        }
      }
    }
  }
}

// Of two equal candidates the first gets exactly the lower half of the random numbers.
TEST(CandidatesTest, TheDrawSplitsExactly) {
  const std::vector<float> row = {-3.0f, 2.0f, 2.0f};
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  const std::vector<uint32_t> allowed = {0b110};
  Candidates candidates(3);
  for (const bool listed : {false, true}) {
    const auto draw = [&](uint64_t random) {
      candidates.Load(row, allowed);
      if (listed) (void)candidates.Ordered();
      return candidates.Draw(random).token;
    };
    EXPECT_EQ(draw(0), 1);
    EXPECT_EQ(draw(kHalf - 1), 1);
    EXPECT_EQ(draw(kHalf), 2);
    EXPECT_EQ(draw(~uint64_t{0}), 2);
  }
}

TEST(CandidatesTest, ScalingThatMakesTiesPutsTheLowerTokenFirst) {
  Candidates candidates(3);
  // Different floats that a factor of 2^-60 makes equal: canonical zero.
  const std::vector<float> row = {1.0f, 2.0f, 1.5f};
  candidates.Load(row, {});
  EXPECT_EQ(candidates.Ordered()[0].token, 1);
  candidates.Scale(0x1p-60f);
  const std::vector<TokenCandidate> want = {{0.0f, 0}, {0.0f, 1}, {0.0f, 2}};
  EXPECT_EQ(ListOf(candidates), want);
  candidates.Load(row, {});
  candidates.Scale(0x1p-60f);
  EXPECT_EQ(ListOf(candidates), want);
}

// Equal best logits at random places: in all lanes of a tile and in the last, partial tile.
TEST(CandidatesTest, EqualOnesAreFoundByLowestToken) {
  constexpr int32_t kTokens = 1000;
  Candidates candidates(kTokens);
  quant::Random random(14);
  for (int round = 0; round < 500; ++round) {
    std::vector<float> row(kTokens, -1.0f);
    std::vector<TokenCandidate> want;
    for (int i = 0; i < 5; ++i) row[random.Next() % kTokens] = 2.0f;
    for (int32_t t = 0; t < kTokens; ++t) {
      if (row[static_cast<size_t>(t)] == 2.0f) want.push_back({2.0f, t});
    }
    for (int32_t t = 0; want.size() < 12; ++t) {
      if (row[static_cast<size_t>(t)] == -1.0f) want.push_back({-1.0f, t});
    }
    candidates.Load(row, {});
    ASSERT_EQ(candidates.Max(), 2.0f);
    ASSERT_EQ(candidates.First(), want.front().token);
    candidates.KeepFirst(12);
    ASSERT_EQ(ListOf(candidates), want);
  }
}

// Logits are read in place; changes go to a copy.
TEST(CandidatesTest, TheCallersLogitsStayAsTheyAre) {
  const std::vector<float> row = {1.0f, 4.0f, 3.0f, 2.0f};
  const std::vector<float> before = row;
  Candidates candidates(4);
  candidates.Load(row, {});
  EXPECT_EQ(candidates.First(), 1);
  candidates.RemoveFromRow(1);
  EXPECT_EQ(candidates.First(), 2);
  *candidates.RowLogit(0) = 5.0f;
  EXPECT_EQ(candidates.First(), 0);
  candidates.Scale(2.0f);
  EXPECT_EQ(candidates.Max(), 10.0f);
  const std::vector<TokenCandidate> changed = {{10.0f, 0}, {6.0f, 2}, {4.0f, 3}};
  EXPECT_EQ(ListOf(candidates), changed);
  EXPECT_EQ(row, before);
  candidates.Load(row, {});  // forgets the changes
  const std::vector<TokenCandidate> again = {{4.0f, 1}, {3.0f, 2}, {2.0f, 3}, {1.0f, 0}};
  EXPECT_EQ(ListOf(candidates), again);
  candidates.Load(std::span(row).first(2), {});  // the row is shorter than the vocabulary
  const std::vector<TokenCandidate> fewer = {{4.0f, 1}, {1.0f, 0}};
  EXPECT_EQ(ListOf(candidates), fewer);
}

TEST(CandidatesTest, OddLogitsAreDefined) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> row = {std::nanf(""), -inf, inf, 1e-30f, -0.0f};
  Candidates candidates(5);
  candidates.Load(row, {});
  const std::vector<TokenCandidate> want = {
      {quant::kHuge, 2}, {0.0f, 3}, {0.0f, 4}, {-quant::kHuge, 0}, {-quant::kHuge, 1}};
  EXPECT_EQ(ListOf(candidates), want);
}

TEST(CandidatesTest, RowsOfAnotherLengthAreNoOverrun) {
  Candidates candidates(4);
  const std::vector<float> row = {1.0f, 3.0f, 2.0f, 0.0f, 9.0f};
  candidates.Load(std::span(row).first(2), {});
  EXPECT_EQ(ListOf(candidates), (std::vector<TokenCandidate>{{3.0f, 1}, {1.0f, 0}}));
  candidates.Load(row, {});
  EXPECT_EQ(candidates.First(), 1);
}

TEST(CandidatesTest, WithoutCandidatesNothingHappens) {
  Candidates candidates(40);
  const std::vector<float> row(40, 1.0f);
  const std::vector<uint32_t> none = {0, 0};
  for (const Case& c : Cases()) {
    candidates.Load(row, none);
    ApplyTo(candidates, c);
    candidates.Scale(0.5f);
    EXPECT_EQ(candidates.First(), -1);
    EXPECT_EQ(candidates.Draw(5).token, -1);
    EXPECT_TRUE(candidates.Ordered().empty());
  }
}

TEST(CandidatesTest, LongListsSortAsComparisonsDo) {
  quant::Random random(14);
  for (const int32_t n : {2047, 2048, 20000}) {
    std::vector<TokenCandidate> list, spare;
    for (int32_t i = 0; i < n; ++i) {
      const float x = i % 3 == 0 ? static_cast<float>(random.Below(5)) - 2.0f
                                 : reference::Canon(random.Wide(-50, 49));
      list.push_back({x, (i * 7919 + 11) % kMaxVocabSize});
    }
    std::vector<TokenCandidate> want = list, near = list;
    std::sort(want.begin(), want.end(), RanksBefore);
    SortCandidates(&list, &spare);
    ASSERT_EQ(list, want);
    std::stable_sort(
        want.begin(), want.end(), [](const TokenCandidate& a, const TokenCandidate& b) {
          return reference::Abs((3.0f - a.logit) - 2.5f) < reference::Abs((3.0f - b.logit) - 2.5f);
        });
    SortByDistance(3.0f, 2.5f, &near, &spare);
    ASSERT_EQ(near, want);
  }
}

}  // namespace
}  // namespace trine
