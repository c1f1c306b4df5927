#include "runtime/sampling/row_passes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>

namespace trine {
namespace {

// Passes work on blocks of this many tokens: results of the vector part wait on the stack for the
// scalar part, and a block in which nothing is of interest costs a compare per token.
constexpr size_t kBlock = 32;

// Calls block(first, count) for the whole row; all but the last have count kBlock.
template <typename Block>
void ForEachBlock(size_t n, Block block) {
  size_t first = 0;
  for (; first + kBlock <= n; first += kBlock) block(first, kBlock);
  if (first < n) block(first, n - first);
}

// Appends the tokens whose logit satisfies `wanted`, which is asked for the removed ones too.
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

// Whether the bits are those of a canonical value: +0, or a magnitude in [2^-50, 2^50].
bool IsCanonical(float x) {
  const uint32_t bits = quant::Bits(x);
  const uint32_t tiny = quant::Bits(quant::kTiny), range = quant::Bits(quant::kHuge) - tiny;
  return (((bits & 0x7fffffffu) - tiny) <= range) | (bits == 0);
}

// to[i] = value(from[i]) where that is canonical, as nearly all are, else odd(from[i]). Asking once
// per block is much cheaper than making every value canonical.
template <typename Value, typename Odd>
void Transform(std::span<const float> from, float* to, Value value, Odd odd) {
  ForEachBlock(from.size(), [&](size_t first, size_t count) {
    const float* x = from.data() + first;
    float y[kBlock];
    int all = 1;
    for (size_t i = 0; i < count; ++i) {
      y[i] = value(x[i]);
      all &= IsCanonical(y[i]);
    }
    if (all == 0) {
      for (size_t i = 0; i < count; ++i) y[i] = odd(x[i]);
    }
    std::copy(y, y + count, to + first);
  });
}

// A logit that at least n of the row reach, and few more where they lie anyhow: the n-th best of
// what is best in each of some parts. kRemoved where parts would have to be too small, or too many.
float BarFor(std::span<const float> row, size_t n) {
  constexpr size_t kLanes = 16, kMostParts = 512;  // as many as the vectors of a loop hold
  const size_t parts = std::min((4 * n + kLanes - 1) / kLanes * kLanes, kMostParts);
  const size_t steps = row.size() / parts;  // what is left of the row raises no bar
  if (parts < 2 * n || steps < 4) return kRemoved;
  float best[kMostParts];
  const float* x = row.data();
  for (size_t part = 0; part < parts; part += kLanes) {
    float most[kLanes];
    std::fill(most, most + kLanes, kRemoved);
    for (size_t step = 0; step < steps; ++step, x += kLanes) {
      for (size_t i = 0; i < kLanes; ++i) most[i] = x[i] > most[i] ? x[i] : most[i];
    }
    std::copy(most, most + kLanes, best + part);
  }
  std::nth_element(best, best + n - 1, best + parts, std::greater<>());
  return best[n - 1];
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

float RowMax(std::span<const float> row) {
  float best[kBlock];
  std::fill(best, best + kBlock, kRemoved);
  ForEachBlock(row.size(), [&](size_t first, size_t count) {
    const float* x = row.data() + first;
    if (count == kBlock) {
      for (size_t i = 0; i < kBlock; ++i) best[i] = x[i] > best[i] ? x[i] : best[i];
    } else {
      for (size_t i = 0; i < count; ++i) best[i] = x[i] > best[i] ? x[i] : best[i];
    }
  });
  return *std::max_element(best, best + kBlock);
}

int32_t FindInRow(std::span<const float> row, float value) {
  int32_t found = -1;
  for (size_t first = 0; first < row.size() && found < 0; first += kBlock) {
    const size_t count = std::min(kBlock, row.size() - first);
    const float* x = row.data() + first;
    int any = 0;
    for (size_t i = 0; i < count; ++i) any |= x[i] == value;
    if (any == 0) continue;
    size_t i = 0;
    while (x[i] != value) ++i;
    found = static_cast<int32_t>(first + i);
  }
  return found;
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

// Keeps up to about 2n of the best so far, and the n-th best of them as the bar. A later token that
// only equals the bar ranks after the n tokens that set it; one that equals the first bar, which
// comes from all of the row, does not.
void SelectFirst(std::span<const float> row, int64_t n, std::vector<TokenCandidate>* list) {
  list->clear();
  if (n <= 0) return;
  const size_t keep = std::min(static_cast<size_t>(n), row.size());
  const auto nth = static_cast<std::ptrdiff_t>(keep) - 1;
  const float least = BarFor(row, keep);
  float bar = least > kRemoved ? std::nextafter(least, kRemoved) : kRemoved;
  const auto compact = [&] {
    std::nth_element(list->begin(), list->begin() + nth, list->end(), RanksBefore);
    list->resize(keep);
    bar = list->back().logit;
  };
  ForEachBlock(row.size(), [&](size_t first, size_t count) {
    const float* x = row.data() + first;
    if (count == kBlock) {
      int any = 0;
      for (size_t i = 0; i < kBlock; ++i) any |= x[i] > bar;
      if (any == 0) return;
    }
    for (size_t i = 0; i < count; ++i) {
      if (x[i] > bar) list->push_back({x[i], static_cast<int32_t>(first + i)});
    }
    if (list->size() >= 2 * keep + kBlock) compact();
  });
  if (list->size() > keep) compact();
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
