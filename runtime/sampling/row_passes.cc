#include "runtime/sampling/row_passes.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace trine {
namespace {

// Passes work on blocks of this many tokens. Results of the vector part wait on the stack for the
// scalar part, and a block without anything of interest costs one compare per token.
constexpr size_t kBlock = 32;

// Calls block(first, count) for all blocks of the row. All but the last have count kBlock.
template <typename Block>
void ForEachBlock(size_t n, Block block) {
  size_t first = 0;
  for (; first + kBlock <= n; first += kBlock) block(first, kBlock);
  if (first < n) block(first, n - first);
}

// Collects the tokens whose logit satisfies `wanted`, which is also called for removed tokens.
template <typename Wanted>
void Collect(std::span<const float> row, Wanted wanted, std::vector<TokenCandidate>* list) {
  list->clear();
  ForEachBlock(row.size(), [&](size_t first, size_t count) {
    const float* x = row.data() + first;
    if (count == kBlock) {
      int any = 0;
      for (size_t i = 0; i < kBlock; ++i) any |= wanted(x[i]);
      if (any == 0) return;
    }
    for (size_t i = 0; i < count; ++i) {
      if (wanted(x[i])) list->push_back({x[i], static_cast<int32_t>(first + i)});
    }
  });
}

// Sets to[i] = value(from[i]) in blocks where all of these are canonical, as in nearly all,
// otherwise odd(from[i]). One check per block is much cheaper than making every value canonical.
template <typename Value, typename Odd>
void Transform(std::span<const float> from, float* to, Value value, Odd odd) {
  ForEachBlock(from.size(), [&](size_t first, size_t count) {
    const float* x = from.data() + first;
    float y[kBlock];
    int all = 1;
    for (size_t i = 0; i < count; ++i) {
      y[i] = value(x[i]);
      all &= quant::IsCanonical(y[i]);
    }
    if (all == 0) {
      for (size_t i = 0; i < count; ++i) y[i] = odd(x[i]);
    }
    std::copy(y, y + count, to + first);
  });
}

// The vectors that fit registers of SSE2 and NEON. Loops over arrays don't work as accumulators:
// GCC 12 keeps them in memory at -O3.
using FloatVector = float __attribute__((vector_size(16)));
using BitsVector = uint32_t __attribute__((vector_size(16)));
constexpr size_t kVectorLanes = 4, kVectors = kPeakLanes / kVectorLanes;

FloatVector LoadVector(const float* x) {
  FloatVector v;
  std::memcpy(&v, x, sizeof(v));
  return v;
}

FloatVector Greater(FloatVector a, FloatVector b) { return a > b ? a : b; }

// Sets all bits of each lane whose value is not canonical, as quant::IsCanonical defines it.
BitsVector IsOdd(FloatVector x) {
  const auto bits = reinterpret_cast<BitsVector>(x);
  const uint32_t least = quant::Bits(quant::kTiny), range = quant::Bits(quant::kHuge) - least;
  return reinterpret_cast<BitsVector>(((bits & 0x7fffffffu) - least > range) & (bits != 0u));
}

struct Peaks {
  FloatVector most[kVectors];

  Peaks() {
    for (FloatVector& v : most) v = FloatVector{} + kRemoved;
  }
  void Add(const float* x) {
    for (size_t i = 0; i < kVectors; ++i) {
      most[i] = Greater(LoadVector(x + i * kVectorLanes), most[i]);
    }
  }
  void Store(float* to) const { std::memcpy(to, most, sizeof(most)); }
};

// Fills the peaks. With kChecks returns whether all values are canonical.
template <bool kChecks>
bool FillAndCheck(std::span<const float> row, float* to) {
  BitsVector odd = {};
  for (size_t first = 0; first < row.size(); first += kPeakTile, to += kPeakLanes) {
    Peaks most;
    const float* x = row.data() + first;
    size_t left = std::min(kPeakTile, row.size() - first);
    for (; left >= kPeakLanes; left -= kPeakLanes, x += kPeakLanes) {
      most.Add(x);
      if constexpr (kChecks) {
        BitsVector some = {};  // not `odd` itself, on which each step would wait four times
        for (size_t i = 0; i < kPeakLanes; i += kVectorLanes) some |= IsOdd(LoadVector(x + i));
        odd |= some;
      }
    }
    if (left > 0) {
      float rest[kPeakLanes];
      std::fill(std::copy(x, x + left, rest), std::end(rest), kRemoved);
      most.Add(rest);
      for (size_t i = 0; kChecks && i < left; ++i) odd[0] |= !quant::IsCanonical(rest[i]);
    }
    most.Store(to);
  }
  return (odd[0] | odd[1] | odd[2] | odd[3]) == 0;
}

// Returns a bar that at least n of the values reach, and few more wherever they lie: divides the
// values into parts and takes the n-th best of the parts' maxima. Returns kRemoved if the parts
// would be too small or too many.
float BarFor(std::span<const float> values, size_t n) {
  constexpr size_t kMostParts = 512;
  const size_t parts = std::min((4 * n + kPeakLanes - 1) / kPeakLanes * kPeakLanes, kMostParts);
  const size_t steps = values.size() / parts;  // values left over are ignored
  if (parts < 2 * n || steps < 2) return kRemoved;
  float best[kMostParts];
  const float* x = values.data();
  for (size_t part = 0; part < parts; part += kPeakLanes) {
    Peaks most;
    for (size_t step = 0; step < steps; ++step, x += kPeakLanes) most.Add(x);
    most.Store(best + part);
  }
  std::nth_element(best, best + n - 1, best + parts, std::greater<>());
  return best[n - 1];
}

// Returns the first token of a peak. The others follow at distances of kPeakLanes.
size_t FirstOfPeak(size_t peak) { return peak / kPeakLanes * kPeakTile + peak % kPeakLanes; }

// Calls at(token) for the tokens of a peak, in ascending order.
template <typename At>
void ForEachOfPeak(size_t n, size_t peak, At at) {
  const size_t first = FirstOfPeak(peak);
  const size_t end = std::min(n, first + kPeakTile);
  for (size_t token = first; token < end; token += kPeakLanes) at(token);
}

float ScaledDistance(const RowRanks& ranks, float logit) {
  return ranks.Distance(logit) * kBucketsPerUnit;
}

}  // namespace

void LoadRow(std::span<const float> logits, std::span<float> row) {
  const size_t n = std::min(logits.size(), row.size());
  Transform(
      logits.first(n), row.data(), [](float x) { return x; }, Sanitised);
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(n), row.end(), kRemoved);
}

void RemoveFromRow(std::span<const uint32_t> allowed, std::span<float> row) {
  for (size_t first = 0; first < row.size(); first += 32) {
    const uint32_t word = first / 32 < allowed.size() ? allowed[first / 32] : 0;
    if (word == 0xffffffffu) continue;
    const size_t count = std::min<size_t>(32, row.size() - first);
    for (size_t i = 0; i < count; ++i) {
      if (!(word >> i & 1u)) row[first + i] = kRemoved;
    }
  }
}

void ScaleRow(float factor, std::span<float> row) {
  Transform(
      row, row.data(), [=](float x) { return x * factor; },
      [=](float x) { return x == kRemoved ? kRemoved : quant::Canon(x * factor); });
}

void FillPeaks(std::span<const float> row, std::span<float> peaks) {
  FillAndCheck</*kChecks=*/false>(row, peaks.data());
}

bool FillPeaksOfAny(std::span<const float> row, std::span<float> peaks) {
  return FillAndCheck</*kChecks=*/true>(row, peaks.data());
}

float MaxOfPeaks(std::span<const float> peaks) {
  Peaks most;
  for (size_t first = 0; first < peaks.size(); first += kPeakLanes) most.Add(&peaks[first]);
  float best[kPeakLanes];
  most.Store(best);
  return *std::max_element(best, best + kPeakLanes);
}

int32_t FindMax(std::span<const float> row, std::span<const float> peaks, float max) {
  size_t found = row.size();
  for (size_t first = 0; first < peaks.size(); first += kPeakLanes) {
    const float* x = peaks.data() + first;
    int any = 0;
    for (size_t i = 0; i < kPeakLanes; ++i) any |= x[i] == max;
    if (any == 0) continue;
    for (size_t i = 0; i < kPeakLanes; ++i) {
      if (x[i] != max) continue;
      ForEachOfPeak(row.size(), first + i, [&](size_t token) {
        if (row[token] == max) found = std::min(found, token);
      });
    }
    break;  // later tiles have only later tokens
  }
  return found < row.size() ? static_cast<int32_t>(found) : -1;
}

RowWeights SumRow(std::span<const float> row, float max) {
  RowWeights sums = {};
  ForEachBlock(row.size(), [&](size_t first, size_t count) {
    const float* x = row.data() + first;
    float weight[kBlock] = {}, with_gap[kBlock] = {};
    for (size_t i = 0; i < count; ++i) {
      const float gap = max - x[i];
      const float e = reference::Exp(-gap);
      weight[i] = e;
      with_gap[i] = e > 0.0f ? e * gap : 0.0f;
    }
    for (size_t i = 0; i < count; ++i) {
      sums.total += FixedPoint(weight[i]);
      sums.with_gap += FixedPoint(with_gap[i]);
    }
  });
  return sums;
}

uint64_t FillHistogram(std::span<const float> row, const RowRanks& ranks, WeightHistogram* out) {
  std::memset(out, 0, sizeof(*out));
  uint64_t total = 0;
  ForEachBlock(row.size(), [&](size_t first, size_t count) {
    const float* x = row.data() + first;
    float weight[kBlock];
    int32_t bucket[kBlock];
    for (size_t i = 0; i < count; ++i) {
      const float scaled = ScaledDistance(ranks, x[i]);
      bucket[i] = static_cast<int32_t>(scaled < kBuckets - 1 ? scaled : kBuckets - 1.0f);
      weight[i] = reference::Exp(x[i] - ranks.max);
    }
    for (size_t i = 0; i < count; ++i) {
      const uint64_t integer = FixedPoint(weight[i]);
      out->weight[bucket[i]] += integer;
      total += integer;
    }
  });
  return total;
}

// The n best peaks belong to n candidates, so the n best candidates are not below the n-th best
// peak, the bar. Only tokens whose peak reaches it are read: few more than n, unless many are
// equal.
void SelectFirst(std::span<const float> row, std::span<const float> peaks, int64_t n,
                 std::vector<TokenCandidate>* list, std::vector<TokenCandidate>* spare) {
  list->clear();
  if (n <= 0) return;
  const size_t keep = std::min(static_cast<size_t>(n), row.size());
  const auto cut = [keep](std::vector<TokenCandidate>* some) {
    if (some->size() <= keep) return;
    std::nth_element(some->begin(), some->begin() + static_cast<std::ptrdiff_t>(keep) - 1,
                     some->end(), RanksBefore);
    some->resize(keep);
  };
  if (keep > peaks.size() / 2) {
    CollectAll(row, list);
    return cut(list);
  }
  const float least = BarFor(peaks, keep);
  Collect(
      peaks, [least](float x) { return (x >= least) & (x != kRemoved); }, spare);
  // Keeps all peaks that equal the last of the best: their candidates may have lower tokens.
  float bar = kRemoved;
  if (spare->size() > keep) {
    const auto nth = spare->begin() + static_cast<std::ptrdiff_t>(keep) - 1;
    std::nth_element(spare->begin(), nth, spare->end(), RanksBefore);
    bar = nth->logit;
  }
  for (const TokenCandidate& peak : *spare) {
    if (peak.logit < bar) continue;
    ForEachOfPeak(row.size(), static_cast<size_t>(peak.token), [&](size_t token) {
      const float x = row[token];
      if (x >= bar && x != kRemoved) list->push_back({x, static_cast<int32_t>(token)});
    });
  }
  cut(list);
}

void CollectAll(std::span<const float> row, std::vector<TokenCandidate>* list) {
  Collect(
      row, [](float x) { return x != kRemoved; }, list);
}

void CollectWithin(std::span<const float> row, float max, float gap,
                   std::vector<TokenCandidate>* list) {
  Collect(
      row, [=](float x) { return (x != kRemoved) & (max - x <= gap); }, list);
}

void CollectBuckets(std::span<const float> row, const RowRanks& ranks, int first, int last,
                    std::vector<TokenCandidate>* list) {
  const float low = static_cast<float>(first);
  const float high =
      last < kBuckets - 1 ? static_cast<float>(last + 1) : std::numeric_limits<float>::infinity();
  Collect(
      row,
      [=](float x) {
        const float scaled = ScaledDistance(ranks, x);
        return (scaled >= low) & (scaled < high);
      },
      list);
}

}  // namespace trine
