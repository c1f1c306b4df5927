// Merges neighbouring symbols until no pair has a merge. The cheapest pair is merged first; among
// equal costs the leftmost pair. Both kinds of encoder use it. n symbols take O(n log n).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trine {

// A stretch of the text. The encoder defines `id`.
struct Symbol {
  uint32_t begin = 0;
  uint32_t bytes = 0;
  int32_t id = -1;
};

// The result of merging two symbols. The merge of lowest cost is done first. Members have no
// default values, because most of an array of PairMerge is never used.
struct PairMerge {
  double cost;
  int32_t id;  // the merged symbol's id; kNoMergeId: there is no merge
};
inline constexpr int32_t kNoMergeId = -1;
inline constexpr PairMerge kNoMerge = {0, kNoMergeId};

// Keeps its memory between words. One thread at a time.
class PairMerger {
 public:
  std::vector<Symbol>& symbols() { return symbols_; }

  // Merges symbols() in place. `find(left, right)` returns the PairMerge of two neighbours.
  template <class Find>
  void Merge(const Find& find) {
    if (symbols_.size() <= kScanLimit) {
      MergeByScan(find);
    } else {
      MergeByHeap(find);
    }
  }

  // Up to this many symbols, scanning all pairs is faster than a heap.
  static constexpr size_t kScanLimit = 40;

 private:
  struct Candidate {
    double cost;
    int32_t id;
    uint32_t left;  // index into symbols_
    // The symbols' sizes when the candidate was added. If a size has changed, so has the pair, and
    // the candidate is skipped.
    uint32_t left_bytes;
    uint32_t right_bytes;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  template <class Find>
  void MergeByScan(const Find& find) {
    const size_t n = symbols_.size();
    if (n < 2) return;
    PairMerge pairs[kScanLimit];
    size_t count = n - 1;  // pairs
    for (size_t i = 0; i < count; ++i) pairs[i] = find(symbols_[i], symbols_[i + 1]);
    while (count > 0) {
      size_t best = count;
      for (size_t i = 0; i < count; ++i) {
        if (pairs[i].id == kNoMergeId) continue;
        if (best == count || pairs[i].cost < pairs[best].cost) best = i;
      }
      if (best == count) break;
      symbols_[best].bytes += symbols_[best + 1].bytes;
      symbols_[best].id = pairs[best].id;
      std::copy(symbols_.begin() + best + 2, symbols_.begin() + count + 1,
                symbols_.begin() + best + 1);
      std::copy(pairs + best + 1, pairs + count, pairs + best);
      --count;
      if (best > 0) pairs[best - 1] = find(symbols_[best - 1], symbols_[best]);
      if (best < count) pairs[best] = find(symbols_[best], symbols_[best + 1]);
    }
    symbols_.resize(count + 1);
  }

  template <class Find>
  void MergeByHeap(const Find& find) {
    const uint32_t n = static_cast<uint32_t>(symbols_.size());
    previous_.resize(n);
    next_.resize(n);
    heap_.clear();
    for (uint32_t i = 0; i < n; ++i) {
      previous_[i] = i == 0 ? kNone : i - 1;
      next_[i] = i + 1 == n ? kNone : i + 1;
    }
    for (uint32_t i = 0; i + 1 < n; ++i) AddCandidate(find, i);
    std::make_heap(heap_.begin(), heap_.end(), Later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), Later);
      const Candidate candidate = heap_.back();
      heap_.pop_back();
      Symbol& left = symbols_[candidate.left];
      const uint32_t right = next_[candidate.left];
      if (left.bytes != candidate.left_bytes || right == kNone ||
          symbols_[right].bytes != candidate.right_bytes) {
        continue;
      }
      left.bytes += symbols_[right].bytes;
      left.id = candidate.id;
      symbols_[right].bytes = 0;
      next_[candidate.left] = next_[right];
      if (next_[right] != kNone) previous_[next_[right]] = candidate.left;
      if (previous_[candidate.left] != kNone) PushCandidate(find, previous_[candidate.left]);
      PushCandidate(find, candidate.left);
    }
    symbols_.erase(std::remove_if(symbols_.begin(), symbols_.end(),
                                  [](const Symbol& symbol) { return symbol.bytes == 0; }),
                   symbols_.end());
  }

  static bool Later(const Candidate& a, const Candidate& b) {
    return a.cost > b.cost || (a.cost == b.cost && a.left > b.left);
  }

  template <class Find>
  bool AddCandidate(const Find& find, uint32_t left) {
    const uint32_t right = next_[left];
    if (right == kNone) return false;
    const PairMerge merge = find(symbols_[left], symbols_[right]);
    if (merge.id == kNoMergeId) return false;
    heap_.push_back({merge.cost, merge.id, left, symbols_[left].bytes, symbols_[right].bytes});
    return true;
  }

  template <class Find>
  void PushCandidate(const Find& find, uint32_t left) {
    if (AddCandidate(find, left)) std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  std::vector<Symbol> symbols_;
  std::vector<uint32_t> previous_;
  std::vector<uint32_t> next_;
  std::vector<Candidate> heap_;
};

}  // namespace trine
