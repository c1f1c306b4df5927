// Linear passes over a row of logits, one value per token of the vocabulary: the only part of the
// sampler whose cost grows with it. Written so that compilers turn them into vector code.
//
// Pure functions. Rows hold canonical values, or kRemoved for a token that is no candidate.

#ifndef TRINE_RUNTIME_SAMPLING_ROW_PASSES_H_
#define TRINE_RUNTIME_SAMPLING_ROW_PASSES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/quant/scalar.h"
#include "kernels/reference/math.h"
#include "runtime/sampling/candidate_order.h"

namespace trine {

// Below every canonical value. It is compared, never computed with.
inline constexpr float kRemoved = -std::numeric_limits<float>::infinity();

// The weight of e^0. With it a vocabulary of 2^22 tokens sums to 2^62 at most.
inline constexpr uint64_t kUnitWeight = uint64_t{1} << 40;

static inline float Sanitised(float x) { return x != x ? -quant::kHuge : quant::Canon(x); }

// floor(2^40 x) for x in [0, 1]. Through a signed integer, for which processors have an
// instruction.
static inline uint64_t FixedPoint(float x) {
  return static_cast<uint64_t>(static_cast<int64_t>(x * 0x1p+40f));
}

// Of a candidate that is `gap` >= 0 below the best.
static inline uint64_t WeightOfGap(float gap) { return FixedPoint(reference::Exp(-gap)); }

// What candidates are ranked by: how far their gap below the best is from `center`. With center 0
// that is the order of candidates.
struct RowRanks {
  float max;
  float center;

  float Distance(float logit) const { return quant::Abs((max - logit) - center); }
};

// Weights by distance, in steps of 1/32. The last bucket takes the rest, whose gap is beyond any
// weight but for typical sampling, where it is as good as any other.
inline constexpr int kBuckets = 1024;
inline constexpr float kBucketsPerUnit = 32.0f;

struct WeightHistogram {
  uint64_t weight[kBuckets];
};

struct RowWeights {
  uint64_t total;     // sum of the weights
  uint64_t with_gap;  // sum of floor(2^40 (e^-gap * gap))
};

void LoadRow(std::span<const float> logits, std::span<float> row);
void RemoveFromRow(std::span<const uint32_t> allowed, std::span<float> row);
void ScaleRow(float factor, std::span<float> row);

// The peaks of a row: for tile after tile of 256 tokens, the greatest of those that are 16 apart.
// With them nearly all of the row need not be looked at again.
inline constexpr size_t kPeakLanes = 16, kPeakTile = 256;

constexpr size_t PeaksOf(size_t tokens) {
  return (tokens + kPeakTile - 1) / kPeakTile * kPeakLanes;
}

void FillPeaks(std::span<const float> row, std::span<float> peaks);
// The same of any values. Returns whether all are canonical; only then are the peaks of use.
bool FillPeaksOfAny(std::span<const float> row, std::span<float> peaks);
// kRemoved for a row without candidates.
float MaxOfPeaks(std::span<const float> peaks);
// The first token whose logit is that maximum; -1: none.
int32_t FindMax(std::span<const float> row, std::span<const float> peaks, float max);
RowWeights SumRow(std::span<const float> row, float max);
// Returns the total.
uint64_t FillHistogram(std::span<const float> row, const RowRanks& ranks, WeightHistogram* out);

// These replace *list, by candidates in ascending order of token; SelectFirst in any order, and
// with *spare as working memory.
void SelectFirst(std::span<const float> row, std::span<const float> peaks, int64_t n,
                 std::vector<TokenCandidate>* list, std::vector<TokenCandidate>* spare);
void CollectAll(std::span<const float> row, std::vector<TokenCandidate>* list);
void CollectWithin(std::span<const float> row, float max, float gap,
                   std::vector<TokenCandidate>* list);
void CollectBuckets(std::span<const float> row, const RowRanks& ranks, int first, int last,
                    std::vector<TokenCandidate>* list);

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_ROW_PASSES_H_
