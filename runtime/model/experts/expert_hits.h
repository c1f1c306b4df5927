// Counts how often tokens chose each expert of a model. Any thread may call it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace trine {

// The hits of experts at some time.
struct ExpertCounts {
  std::vector<std::vector<uint64_t>> hits;  // [layer][expert]; a layer without experts has zeros

  uint64_t choices() const;  // the sum of all hits
  // Returns the hits since `before`. REQUIRES: both have as many layers and experts.
  ExpertCounts Since(const ExpertCounts& before) const;
};

class ExpertHits {
 public:
  ExpertHits(int64_t layers, int64_t experts)
      : layers_(layers),
        experts_(experts),
        hits_(std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(layers * experts))) {}

  int64_t layers() const { return layers_; }
  int64_t experts() const { return experts_; }

  // Counts a layer's chosen experts. REQUIRES: each id is at least 0 and less than experts().
  void Count(int64_t layer, std::span<const int32_t> ids) {
    for (const int32_t id : ids) At(layer, id).fetch_add(1, std::memory_order_relaxed);
    choices_.fetch_add(ids.size(), std::memory_order_relaxed);
  }
  // Adds hits of the past, which are no choices of this run.
  void Add(int64_t layer, int64_t expert, uint64_t hits) {
    At(layer, expert).fetch_add(hits, std::memory_order_relaxed);
  }
  // Count choices of experts in slots, and an expert that was moved to a slot.
  void CountInSlots(uint64_t choices) { in_slots_.fetch_add(choices, std::memory_order_relaxed); }
  void CountMove(uint64_t bytes) {
    moved_experts_.fetch_add(1, std::memory_order_relaxed);
    moved_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // Returns the hits of a layer's experts.
  std::vector<uint64_t> OfLayer(int64_t layer) const {
    std::vector<uint64_t> hits(static_cast<size_t>(experts_));
    for (size_t e = 0; e < hits.size(); ++e) {
      hits[e] = At(layer, static_cast<int64_t>(e)).load(std::memory_order_relaxed);
    }
    return hits;
  }
  ExpertCounts Snapshot() const {
    ExpertCounts counts;
    for (int64_t layer = 0; layer < layers_; ++layer) counts.hits.push_back(OfLayer(layer));
    return counts;
  }

  // Counters of this run. They go on when a model is loaded again.
  uint64_t choices() const { return choices_; }
  uint64_t in_slots() const { return in_slots_; }
  uint64_t moved_experts() const { return moved_experts_; }
  uint64_t moved_bytes() const { return moved_bytes_; }

 private:
  std::atomic<uint64_t>& At(int64_t layer, int64_t expert) const {
    return hits_[static_cast<size_t>(layer * experts_ + expert)];
  }

  const int64_t layers_, experts_;
  const std::unique_ptr<std::atomic<uint64_t>[]> hits_;
  std::atomic<uint64_t> choices_ = 0, in_slots_ = 0, moved_experts_ = 0, moved_bytes_ = 0;
};

// Returns the part of a layer's hits that its `count` most chosen experts have. Without hits all
// experts count alike.
double HitShare(std::vector<uint64_t> hits, int64_t count);

// Returns the part of all hits that the most chosen tenth of each layer's experts has, at least one
// expert of each. 0: there are no hits.
double TopTenthShare(const ExpertCounts& counts);

}  // namespace trine
