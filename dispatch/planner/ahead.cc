#include "dispatch/planner/ahead.h"

#include <algorithm>

#include "dispatch/planner/guess.h"

namespace trine::planner {

Ahead::Ahead(const SumProblem& problem)
    : problem_(problem),
      chain_(*problem.chain),
      far_(static_cast<size_t>(chain_.All()) + 1),
      groups_of_(chain_.devices.size()) {
  FillNeeded();
  for (int d = 0; d < chain_.n(); ++d) {
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      if ((problem_.groups[g].members & One(d)) != 0) groups_of_[d].push_back(g);
    }
  }
}

void Ahead::FillNeeded() {
  needed_.assign(static_cast<size_t>(chain_.All()) + 1, chain_.units);
  earliest_.resize(chain_.devices.size());
  for (int d = 0; d < chain_.n(); ++d) {
    std::vector<int>& first = earliest_[d];
    first.resize(static_cast<size_t>(chain_.units) + 1);
    int b = 0;
    for (int e = 0; e <= chain_.units; ++e) {
      while (b < e && problem_.reach[d][b] < e) ++b;
      first[e] = b;
    }
  }
  for (DeviceMask set = 1; set <= chain_.All(); ++set) {
    for (int d = 0; d < chain_.n(); ++d) {
      if ((set & One(d)) == 0) continue;
      needed_[set] = std::min(needed_[set], earliest_[d][needed_[set & ~One(d)]]);
    }
  }
}

const std::vector<uint16_t>& Ahead::FarFrom(DeviceMask set) {
  std::vector<uint16_t>& far = far_[set];
  if (!far.empty()) return far;
  far.resize(static_cast<size_t>(chain_.units) + 1);
  for (int b = 0; b <= chain_.units; ++b) far[b] = static_cast<uint16_t>(b);
  for (int d = 0; d < chain_.n(); ++d) {
    if ((set & One(d)) == 0) continue;
    const std::vector<uint16_t>& before = FarFrom(set & ~One(d));
    for (int b = 0; b <= chain_.units; ++b) {
      far[b] = std::max(far[b], static_cast<uint16_t>(problem_.reach[d][before[b]]));
    }
  }
  steps_ += far.size();
  return far;
}

bool Ahead::Holds(int d, int begin, int end, const GroupUse& used) {
  for (const size_t g : groups_of_[d]) {
    const ChainGroup& group = problem_.groups[g];
    const int64_t all = used[g] + group.Use(d, begin, end);
    if (all <= group.capacity) continue;
    if (group.held_to_level) refused_ = std::min(refused_, all);
    return false;
  }
  return true;
}

// Returns whether d can take what the other unused devices leave. `others`: these devices.
bool Ahead::MayTake(int d, DeviceMask others, int boundary, const GroupUse& used) {
  DeviceMask before = others;
  while (true) {
    ++steps_;
    const int begin = FarFrom(before)[boundary];
    const int end = needed_[others & ~before];
    if (begin >= end || (problem_.reach[d][begin] >= end && Holds(d, begin, end, used))) {
      middle_ = d;
      before_ = before;
      return true;
    }
    if (before == 0) return false;
    before = (before - 1) & others;
  }
}

bool Ahead::MayEnd(DeviceMask in_use, int boundary, const GroupUse& used) {
  const DeviceMask left = chain_.All() & ~in_use;
  if (needed_[left] > boundary) return false;
  middle_ = -1;
  before_ = 0;
  DeviceMask members = 0;
  for (const ChainGroup& group : problem_.groups) {
    if (group.Open(in_use)) members |= group.members;
  }
  for (int d = 0; d < chain_.n(); ++d) {
    if ((members & left & One(d)) == 0) continue;
    if (!MayTake(d, left & ~One(d), boundary, used)) return false;
  }
  return true;
}

// Extends the path by the set's devices as far as they get.
void Ahead::Advance(DeviceMask set, int boundary, Path& path) {
  const int end = FarFrom(set)[boundary];
  if (end == boundary) return;
  for (int d = 0; d < chain_.n(); ++d) {
    if ((set & One(d)) == 0) continue;
    const int begin = FarFrom(set & ~One(d))[boundary];
    if (problem_.reach[d][begin] != end) continue;
    Advance(set & ~One(d), boundary, path);
    if (end > begin) path = path.With(d, end);
    return;
  }
}

// Extends the path by the set's devices from the boundary to the last unit.
void Ahead::Conclude(DeviceMask set, int boundary, Path& path) const {
  for (int d = 0; d < chain_.n() && boundary < chain_.units; ++d) {
    if ((set & One(d)) == 0) continue;
    const int end = needed_[set & ~One(d)];
    if (earliest_[d][end] != needed_[set]) continue;
    if (end > boundary) path = path.With(d, end);
    return Conclude(set & ~One(d), std::max(boundary, end), path);
  }
}

bool Ahead::Allowed(const Path& path) const {
  if (path.size == 0 || path.end[path.size - 1] != chain_.units) return false;
  DeviceMask in_use = 0;
  bool fits = true;
  path.ForEach([&](int d, int begin, int end) {
    in_use |= One(d);
    fits = fits && end <= problem_.reach[d][begin];
  });
  return fits && (problem_.required & ~in_use) == 0 && CostOf(problem_, path) < kInfinite &&
         Overdrawing(problem_, path) == 0;
}

std::optional<Path> Ahead::Finish(const Path& path, DeviceMask in_use, int boundary) {
  Path whole = path;
  DeviceMask left = chain_.All() & ~in_use;
  if (middle_ >= 0) {
    left &= ~(before_ | One(middle_));
    // The devices before the middle one may stop where the devices after it can take over.
    const int begin = FarFrom(before_)[boundary];
    Advance(before_, boundary, whole);
    boundary = begin;
    if (needed_[left] > boundary) {
      boundary = needed_[left];
      whole = whole.With(middle_, boundary);
    }
  }
  Conclude(left, boundary, whole);
  if (!Allowed(whole)) return std::nullopt;
  return whole;
}

}  // namespace trine::planner
