// Counts how often tokens chose each expert of a model. Any thread may call it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace trine {

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
  }
  void Add(int64_t layer, int64_t expert, uint64_t hits) {
    At(layer, expert).fetch_add(hits, std::memory_order_relaxed);
  }
  // Returns the hits of a layer's experts.
  std::vector<uint64_t> OfLayer(int64_t layer) const {
    std::vector<uint64_t> hits(static_cast<size_t>(experts_));
    for (size_t e = 0; e < hits.size(); ++e) {
      hits[e] = At(layer, static_cast<int64_t>(e)).load(std::memory_order_relaxed);
    }
    return hits;
  }

 private:
  std::atomic<uint64_t>& At(int64_t layer, int64_t expert) const {
    return hits_[static_cast<size_t>(layer * experts_ + expert)];
  }

  const int64_t layers_, experts_;
  const std::unique_ptr<std::atomic<uint64_t>[]> hits_;
};

// Returns the part of a layer's hits that its `count` most chosen experts have. Without hits all
// experts count alike.
double HitShare(std::vector<uint64_t> hits, int64_t count);

}  // namespace trine
