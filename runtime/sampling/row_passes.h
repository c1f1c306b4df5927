// Linear passes over a row of logits, which has one value per token of the vocabulary. Only this
// part of the sampler costs more for a larger vocabulary, so its loops are written such that
// compilers vectorise them.
//
// Pure functions. A row holds a canonical value for each candidate, and kRemoved for every other
// token.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/quant/scalar.h"
#include "kernels/reference/math.h"

namespace trine {

struct TokenCandidate {
  float logit;  // canonical
  int32_t token;

  bool operator==(const TokenCandidate&) const = default;
};

// Orders candidates by descending logit; among equal logits the lowest token comes first. The order
// is total, so there is only one sorted order.
inline bool RanksBefore(const TokenCandidate& a, const TokenCandidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// Is below every canonical value. It is only compared, never used in a computation.
inline constexpr float kRemoved = -std::numeric_limits<float>::infinity();

// The weight of e^0, which is the largest. So the weights of 2^22 tokens sum to 2^62 at most.
inline constexpr uint64_t kUnitWeight = uint64_t{1} << 40;

// Returns the canonical value of a logit; a NaN becomes -2^50.
static inline float Sanitised(float x) { return x != x ? -quant::kHuge : quant::Canon(x); }

// Returns floor(2^40 x) for x in [0, 1]. Goes through a signed integer, because processors have an
// instruction for that.
static inline uint64_t FixedPoint(float x) {
  return static_cast<uint64_t>(static_cast<int64_t>(x * 0x1p+40f));
}

// Returns the weight of a candidate whose logit is `gap` >= 0 below the best.
static inline uint64_t WeightOfGap(float gap) { return FixedPoint(reference::Exp(-gap)); }

// Ranks candidates by how far their gap below the best logit is from `center`. If center is 0, this
// is the order of candidates.
struct RowRanks {
  float max;
  float center;

  float Distance(float logit) const { return quant::Abs((max - logit) - center); }
};

// A histogram of weights by RowRanks::Distance has this many buckets, each 1/32 wide. The last
// bucket takes all larger distances. If center is 0, its candidates have no weight; in typical
// sampling they may have some.
inline constexpr int kBuckets = 1024;
inline constexpr float kBucketsPerUnit = 32.0f;

struct WeightHistogram {
  uint64_t weight[kBuckets];
};

struct RowWeights {
  uint64_t total;     // the sum of the weights
  uint64_t with_gap;  // the sum of floor(2^40 (e^-gap * gap))
};

// Copies logits to a row and makes them canonical.
void LoadRow(std::span<const float> logits, std::span<float> row);
// Removes the tokens that are not allowed. Bit i % 32 of allowed[i / 32] allows token i.
void RemoveFromRow(std::span<const uint32_t> allowed, std::span<float> row);
// Multiplies all logits by `factor` and makes the results canonical.
void ScaleRow(float factor, std::span<float> row);

// The peaks of a row are its local maxima, which save reading most of the row again. Each tile of
// 256 tokens has 16 peaks: peak i is the maximum of the tile's tokens i, i + 16, i + 32, ...
inline constexpr size_t kPeakLanes = 16, kPeakTile = 256;

constexpr size_t PeaksOf(size_t tokens) {
  return (tokens + kPeakTile - 1) / kPeakTile * kPeakLanes;
}

// Computes the peaks of a row.
void FillPeaks(std::span<const float> row, std::span<float> peaks);
// Computes the peaks of a row that may have values that are not canonical. Returns whether all
// values are canonical; if not, the peaks are useless.
bool FillPeaksOfAny(std::span<const float> row, std::span<float> peaks);
// Returns the best logit, or kRemoved if the row has no candidates.
float MaxOfPeaks(std::span<const float> peaks);
// Returns the first token with the logit `max`, or -1 if there is none.
int32_t FindMax(std::span<const float> row, std::span<const float> peaks, float max);
RowWeights SumRow(std::span<const float> row, float max);
// Sums the weights of the candidates in each bucket. Returns the total weight.
uint64_t FillHistogram(std::span<const float> row, const RowRanks& ranks, WeightHistogram* out);

// The next four functions replace *list by some candidates of the row. All but SelectFirst put them
// in ascending order of token.

// Takes the first n candidates, in any order. *spare is working memory.
void SelectFirst(std::span<const float> row, std::span<const float> peaks, int64_t n,
                 std::vector<TokenCandidate>* list, std::vector<TokenCandidate>* spare);
void CollectAll(std::span<const float> row, std::vector<TokenCandidate>* list);
// Takes the candidates whose logits are at most `gap` below `max`.
void CollectWithin(std::span<const float> row, float max, float gap,
                   std::vector<TokenCandidate>* list);
// Takes the candidates in buckets `first` to `last` of the histogram.
void CollectBuckets(std::span<const float> row, const RowRanks& ranks, int first, int last,
                    std::vector<TokenCandidate>* list);

}  // namespace trine
