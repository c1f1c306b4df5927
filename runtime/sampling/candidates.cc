#include "runtime/sampling/candidates.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/quant/scalar.h"
#include "runtime/sampling/philox.h"

namespace trine {
namespace {

constexpr int kDigitBits = 11;
constexpr uint32_t kDigits = 1u << kDigitBits;

// Below this many a comparison sort is faster than the passes over 2048 digits.
constexpr size_t kRadixMinimum = 2048;

// Returns a key that ascends where floats descend.
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

// Returns the weight of a share p < 1 of the whole.
uint64_t ShareOf(uint64_t total, float p) {
  return static_cast<uint64_t>(static_cast<double>(p) * static_cast<double>(total));
}

// Returns the bucket in which the running sum reaches `need`, and the sum before it.
std::pair<int, uint64_t> FindBucket(const WeightHistogram& histogram, uint64_t need) {
  uint64_t before = 0;
  int bucket = 0;
  while (bucket < kBuckets - 1 && before + histogram.weight[bucket] < need) {
    before += histogram.weight[bucket++];
  }
  return {bucket, before};
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

Candidates::Candidates(int32_t vocab_size)
    : vocab_size_(vocab_size), histogram_(std::make_unique<WeightHistogram>()) {
  const auto n = static_cast<size_t>(vocab_size);
  own_row_.resize(n);
  peaks_.resize(PeaksOf(n));
  row_ = own_row_.data();
  list_.reserve(n);
  spare_.reserve(n);
  weights_.reserve(n);
}

Candidates& Candidates::operator=(const Candidates& other) {
  if (this != &other) *this = Candidates(other);
  return *this;
}

void Candidates::Load(std::span<const float> logits, std::span<const uint32_t> allowed) {
  is_row_ = true;
  has_peaks_ = has_max_ = false;
  n_weights_ = 0;
  list_.clear();
  is_looked_at_ = !allowed.empty() || logits.size() < own_row_.size();
  if (!is_looked_at_) {
    row_ = logits.data();
    return;
  }
  row_ = own_row_.data();
  LoadRow(logits, own_row_);
  if (!allowed.empty()) trine::RemoveFromRow(allowed, own_row_);
}

// Returns the row with canonical values. One pass over the caller's logits finds whether they can
// stay in place, and their peaks.
std::span<const float> Candidates::Row() {
  const std::span<const float> row(row_, own_row_.size());
  if (std::exchange(is_looked_at_, true)) return row;
  has_peaks_ = FillPeaksOfAny(row, peaks_);
  if (has_peaks_) return row;
  LoadRow(row, own_row_);
  row_ = own_row_.data();
  return own_row_;
}

float* Candidates::OwnRow() {
  has_peaks_ = has_max_ = false;
  if (row_ == own_row_.data()) return own_row_.data();
  const std::span<const float> row(row_, own_row_.size());
  if (std::exchange(is_looked_at_, true)) {
    std::copy(row.begin(), row.end(), own_row_.begin());
  } else {
    LoadRow(row, own_row_);
  }
  row_ = own_row_.data();
  return own_row_.data();
}

std::span<const float> Candidates::Peaks() {
  const std::span<const float> row = Row();
  if (!std::exchange(has_peaks_, true)) FillPeaks(row, peaks_);
  return peaks_;
}

float* Candidates::RowLogit(int32_t token) {
  if (token < 0 || token >= vocab_size_) return nullptr;
  float* const logit = OwnRow() + token;
  return *logit == kRemoved ? nullptr : logit;
}

void Candidates::RemoveFromRow(int32_t token) {
  if (float* const logit = RowLogit(token)) *logit = kRemoved;
}

void Candidates::Scale(float factor) {
  if (factor == 1.0f) return;
  if (is_row_) {
    ScaleRow(factor, {OwnRow(), own_row_.size()});
    return;
  }
  for (TokenCandidate& candidate : list_) candidate.logit = quant::Canon(candidate.logit * factor);
  n_weights_ = 0;
  // Scaling may make different logits equal, and then the lower token comes first.
  if (!std::is_sorted(list_.begin(), list_.end(), RanksBefore)) SortCandidates(&list_, &spare_);
}

void Candidates::MakeList() {
  SortCandidates(&list_, &spare_);
  is_row_ = false;
  n_weights_ = 0;
}

void Candidates::Truncate(size_t n) {
  if (n < list_.size()) list_.resize(n);
  n_weights_ = std::min(n_weights_, list_.size());
}

void Candidates::EnsureWeights() {
  if (n_weights_ == list_.size()) return;
  weights_.clear();
  for (const TokenCandidate& candidate : list_) {
    weights_.push_back(WeightOfGap(list_.front().logit - candidate.logit));
  }
  n_weights_ = list_.size();
}

void Candidates::KeepFirst(int64_t n) {
  if (n >= vocab_size_) return;
  if (is_row_) {
    SelectFirst(Row(), Peaks(), n, &list_, &spare_);
    MakeList();
  } else {
    Truncate(static_cast<size_t>(n));
  }
}

void Candidates::KeepTopP(float p, int64_t min_keep) {
  uint64_t need = 0;
  if (is_row_) {
    const float max = Max();
    if (max == kRemoved) return;
    const RowRanks ranks = {max, 0.0f};
    need = ShareOf(FillHistogram(Row(), ranks, histogram_.get()), p);
    CollectBuckets(Row(), ranks, 0, FindBucket(*histogram_, need).first, &list_);
    if (static_cast<int64_t>(list_.size()) < min_keep) return KeepFirst(min_keep);
    MakeList();
  } else {
    need = ShareOf(TotalWeight(), p);
  }
  EnsureWeights();
  uint64_t sum = 0;
  for (size_t i = 0; i < n_weights_; ++i) {
    sum += weights_[i];
    if (sum >= need && static_cast<int64_t>(i) + 1 >= min_keep) return Truncate(i + 1);
  }
}

void Candidates::KeepTypical(float p, int64_t min_keep) {
  const float max = Max();
  if (max == kRemoved) return;
  RowWeights sums = {};
  if (is_row_) {
    sums = SumRow(Row(), max);
  } else {
    for (const TokenCandidate& candidate : list_) {
      const float gap = max - candidate.logit, e = reference::Exp(-gap);
      sums.total += FixedPoint(e);
      sums.with_gap += e > 0.0f ? FixedPoint(e * gap) : 0;
    }
  }
  // A candidate's surprise is its gap plus the logarithm of the sum. The mean surprise, the
  // entropy, is the mean gap plus the same logarithm, so their difference needs no logarithm.
  const auto mean_gap =
      static_cast<float>(static_cast<double>(sums.with_gap) / static_cast<double>(sums.total));
  const uint64_t need = ShareOf(sums.total, p);
  if (is_row_) {
    const RowRanks ranks = {max, mean_gap};
    FillHistogram(Row(), ranks, histogram_.get());
    CollectBuckets(Row(), ranks, 0, FindBucket(*histogram_, need).first, &list_);
    if (static_cast<int64_t>(list_.size()) < min_keep) CollectAll(Row(), &list_);
    is_row_ = false;
  }
  CutTypical(max, mean_gap, need, min_keep);
}

void Candidates::CutTypical(float max, float mean_gap, uint64_t need, int64_t min_keep) {
  SortByDistance(max, mean_gap, &list_, &spare_);
  uint64_t sum = 0;
  for (size_t i = 0; i < list_.size(); ++i) {
    sum += WeightOfGap(max - list_[i].logit);
    if (sum >= need && static_cast<int64_t>(i) + 1 >= min_keep) {
      list_.resize(i + 1);
      break;
    }
  }
  MakeList();
}

void Candidates::KeepWithin(float gap, int64_t min_keep) {
  const float max = Max();
  if (max == kRemoved) return;
  if (is_row_) {
    CollectWithin(Row(), max, gap, &list_);
    if (static_cast<int64_t>(list_.size()) < min_keep) return KeepFirst(min_keep);
    return MakeList();
  }
  const auto end = std::partition_point(
      list_.begin(), list_.end(), [&](const TokenCandidate& c) { return max - c.logit <= gap; });
  Truncate(std::max(static_cast<size_t>(end - list_.begin()), static_cast<size_t>(min_keep)));
}

std::span<const TokenCandidate> Candidates::Ordered() {
  if (is_row_) {
    CollectAll(Row(), &list_);
    MakeList();
  }
  return list_;
}

int32_t Candidates::First() {
  const float max = Max();
  if (max == kRemoved) return -1;
  if (!is_row_) return list_.front().token;
  return FindMax(Row(), Peaks(), max);
}

float Candidates::Max() {
  if (!is_row_) return list_.empty() ? kRemoved : list_.front().logit;
  if (!std::exchange(has_max_, true)) max_ = MaxOfPeaks(Peaks());
  return max_;
}

uint64_t Candidates::TotalWeight() {
  if (is_row_) return SumRow(Row(), Max()).total;
  EnsureWeights();
  uint64_t total = 0;
  for (size_t i = 0; i < n_weights_; ++i) total += weights_[i];
  return total;
}

Candidates::Drawn Candidates::Draw(uint64_t random) {
  const float max = Max();
  if (max == kRemoved) return {-1, 0.0f, 0};
  uint64_t total = 0, target = 0, sum = 0;
  if (is_row_) {
    const RowRanks ranks = {max, 0.0f};
    total = FillHistogram(Row(), ranks, histogram_.get());
    target = ScaleRandom(random, total);
    const auto [bucket, before] = FindBucket(*histogram_, target + 1);
    CollectBuckets(Row(), ranks, bucket, bucket, &list_);
    SortCandidates(&list_, &spare_);
    sum = before;
  } else {
    total = TotalWeight();
    target = ScaleRandom(random, total);
  }
  for (const TokenCandidate& candidate : list_) {
    const float gap = max - candidate.logit;
    sum += WeightOfGap(gap);
    if (sum > target) return {candidate.token, gap, total};
  }
  return {-1, 0.0f, 0};  // not reached: the sum of all weights exceeds the target
}

}  // namespace trine
