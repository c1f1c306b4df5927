// The order in which the best of n scores are taken: highest first, equal ones by lowest id.

#ifndef TRINE_KERNELS_REFERENCE_SELECTION_H_
#define TRINE_KERNELS_REFERENCE_SELECTION_H_

#include <cstdint>

namespace trine::reference {

struct Ranked {
  float score;
  int64_t id = -1;  // -1: none
};

inline bool RanksBefore(const Ranked& a, const Ranked& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

// The first in order after `previous` (none: the best of all). `score` maps an id to its score.
// Scanning again for each place needs no memory, whatever n is.
template <typename Score>
Ranked NextRanked(int64_t n, const Score& score, const Ranked& previous) {
  Ranked best;
  for (int64_t id = 0; id < n; ++id) {
    const Ranked candidate = {score(id), id};
    if (previous.id >= 0 && !RanksBefore(previous, candidate)) continue;
    if (best.id < 0 || RanksBefore(candidate, best)) best = candidate;
  }
  return best;
}

}  // namespace trine::reference

#endif  // TRINE_KERNELS_REFERENCE_SELECTION_H_
