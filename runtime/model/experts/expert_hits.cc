#include "runtime/model/experts/expert_hits.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace trine {
namespace {

uint64_t SumOf(const std::vector<uint64_t>& hits) {
  return std::accumulate(hits.begin(), hits.end(), uint64_t{0});
}

// Returns the sum of the `count` largest numbers. REQUIRES: there are as many.
uint64_t SumOfLargest(std::vector<uint64_t> hits, size_t count) {
  const auto end = hits.begin() + static_cast<ptrdiff_t>(count);
  std::partial_sort(hits.begin(), end, hits.end(), std::greater<>());
  return std::accumulate(hits.begin(), end, uint64_t{0});
}

}  // namespace

uint64_t ExpertCounts::choices() const {
  uint64_t sum = 0;
  for (const std::vector<uint64_t>& layer : hits) sum += SumOf(layer);
  return sum;
}

ExpertCounts ExpertCounts::Since(const ExpertCounts& before) const {
  ExpertCounts since = *this;
  for (size_t layer = 0; layer < since.hits.size(); ++layer) {
    for (size_t e = 0; e < since.hits[layer].size(); ++e) {
      since.hits[layer][e] -= before.hits[layer][e];
    }
  }
  return since;
}

double HitShare(std::vector<uint64_t> hits, int64_t count) {
  const auto sum = static_cast<double>(SumOf(hits));
  const auto all = static_cast<double>(hits.size());
  const size_t first = std::min(static_cast<size_t>(count), hits.size());
  if (sum == 0) return static_cast<double>(first) / all;
  return static_cast<double>(SumOfLargest(std::move(hits), first)) / sum;
}

double TopTenthShare(const ExpertCounts& counts) {
  const uint64_t all = counts.choices();
  if (all == 0) return 0;
  uint64_t top = 0;
  for (const std::vector<uint64_t>& layer : counts.hits) {
    top += SumOfLargest(layer, (layer.size() + 9) / 10);
  }
  return static_cast<double>(top) / static_cast<double>(all);
}

}  // namespace trine
