#include "runtime/sampling/candidate_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "kernels/quant/scalar.h"
#include "runtime/sampling/row_passes.h"

namespace trine {
namespace {

constexpr int kDigitBits = 11;
constexpr uint32_t kDigits = 1u << kDigitBits;

// Below this many a comparison sort is faster than the passes over 2048 digits.
constexpr size_t kRadixMinimum = 2048;

// Ascending in the order of descending floats.
uint32_t DescendingKey(float x) {
  const uint32_t bits = quant::Bits(x);
  return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

// Sorts by ascending key, of `bits` bits, keeping the order of equal ones.
template <typename Key>
void RadixSort(int bits, Key key, std::vector<TokenCandidate>* list,
               std::vector<TokenCandidate>* spare) {
  spare->resize(list->size());
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    std::array<uint32_t, kDigits> place{};
    for (const TokenCandidate& candidate : *list)
      ++place[(key(candidate) >> shift) & (kDigits - 1)];
    uint32_t before = 0;
    for (uint32_t& count : place) before += std::exchange(count, before);
    for (const TokenCandidate& candidate : *list) {
      (*spare)[place[(key(candidate) >> shift) & (kDigits - 1)]++] = candidate;
    }
    list->swap(*spare);
  }
}

}  // namespace

void SortCandidates(std::vector<TokenCandidate>* list, std::vector<TokenCandidate>* spare) {
  if (list->size() < kRadixMinimum) {
    std::sort(list->begin(), list->end(), RanksBefore);
    return;
  }
  const auto by_token = [](const TokenCandidate& a, const TokenCandidate& b) {
    return a.token < b.token;
  };
  if (!std::is_sorted(list->begin(), list->end(), by_token)) {
    RadixSort(
        22, [](const TokenCandidate& c) { return static_cast<uint32_t>(c.token); }, list, spare);
  }
  RadixSort(
      32, [](const TokenCandidate& c) { return DescendingKey(c.logit); }, list, spare);
}

void SortByDistance(float max, float center, std::vector<TokenCandidate>* list,
                    std::vector<TokenCandidate>* spare) {
  const RowRanks ranks = {max, center};
  if (list->size() < kRadixMinimum) {
    std::sort(list->begin(), list->end(), [&](const TokenCandidate& a, const TokenCandidate& b) {
      const float distance_a = ranks.Distance(a.logit), distance_b = ranks.Distance(b.logit);
      return distance_a < distance_b || (distance_a == distance_b && RanksBefore(a, b));
    });
    return;
  }
  SortCandidates(list, spare);
  RadixSort(
      32, [&](const TokenCandidate& c) { return quant::Bits(ranks.Distance(c.logit)); }, list,
      spare);
}

}  // namespace trine
