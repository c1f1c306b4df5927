// Consecutive layers of a model. The user's split, the planner's placement and the segments of a
// loaded model all describe their parts by spans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace trine {

// Layers [begin, end), with the embedding before them or the output head after them. A span with
// the embedding or the head may have no layers.
struct LayerSpan {
  int64_t begin = 0;
  int64_t end = 0;
  bool embedding = false;
  bool head = false;

  bool empty() const { return begin == end && !embedding && !head; }
  int64_t layers() const { return end - begin; }
  bool operator==(const LayerSpan&) const = default;
};

// A span on the device with this name.
struct LayerRange : LayerSpan {
  std::string device;
};

// Gives the embedding to the first range and the head to the last, unless other ranges have them.
template <class Range>
void SetEnds(std::vector<Range>* ranges) {
  const auto has = [&](bool LayerSpan::*end) {
    return std::any_of(ranges->begin(), ranges->end(), [&](const Range& r) { return r.*end; });
  };
  if (ranges->empty()) return;
  if (!has(&LayerSpan::embedding)) ranges->front().embedding = true;
  if (!has(&LayerSpan::head)) ranges->back().head = true;
}

}  // namespace trine
