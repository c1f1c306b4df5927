#include "backends/cpu/way_trials.h"

#include <algorithm>

namespace trine::cpu {
namespace {

using cpu_kernels::Way;

// Alternates the ways, and swaps them after half of the turns, so that each of 2, 3, 4, 5, 6 or 8
// workers that take turns tries both.
Way WayOf(uint32_t turn) {
  const uint32_t swapped = turn > WayTrial::kSamples ? 1 : 0;
  return (turn + swapped) % 2 == 0 ? Way::kDirect : Way::kTiles;
}

}  // namespace

WayTrial::Turn WayTrial::Next() {
  const Way way = chosen();
  if (way != Way::kUsual) return {way};
  // Does not count beyond the last turn: nothing is chosen until all turns have been reported.
  if (begun_.load(std::memory_order_relaxed) >= 2 * kSamples) return {};
  const uint32_t turn = begun_.fetch_add(1, std::memory_order_relaxed);
  if (turn >= 2 * kSamples) return {};
  return {WayOf(turn), turn};
}

void WayTrial::Tell(const Turn& turn, uint64_t time) {
  times_[turn.number].store(time, std::memory_order_relaxed);
  // The thread that reports last sees the times of all.
  if (told_.fetch_add(1, std::memory_order_acq_rel) + 1 == 2 * kSamples) Choose();
}

void WayTrial::Choose() {
  std::array<uint64_t, kSamples> direct, tiles;
  size_t n_direct = 0, n_tiles = 0;
  for (uint32_t turn = 0; turn < 2 * kSamples; ++turn) {
    const uint64_t time = times_[turn].load(std::memory_order_relaxed);
    if (WayOf(turn) == Way::kDirect) {
      direct[n_direct++] = time;
    } else {
      tiles[n_tiles++] = time;
    }
  }
  // Many times are too long, because of other work on the machine or a slow core. A few are too
  // short, because the data was in a cache by chance. The lower quartile avoids both.
  const auto quarter = [](std::array<uint64_t, kSamples>& times) {
    std::nth_element(times.begin(), times.begin() + kSamples / 4, times.end());
    return times[kSamples / 4];
  };
  chosen_.store(quarter(tiles) < quarter(direct) ? Way::kTiles : Way::kDirect,
                std::memory_order_relaxed);
}

WayTrial& ShapeTrials::For(int64_t columns) {
  const int64_t index = columns <= 16 ? columns - 2 : columns <= 32 ? 15 : columns <= 64 ? 16 : 17;
  return trials_[static_cast<size_t>(index)];
}

ShapeTrials& WayTrials::Of(const Shape& shape) {
  std::lock_guard<std::mutex> lock(mutex_);
  return shapes_.try_emplace(shape).first->second;
}

}  // namespace trine::cpu
