// Selects the best of n scores, one after the other: the highest first, and of equal scores the one
// with the lowest id. The size of the workgroup must be a power of two. Each invocation keeps the
// best of its own ids, which are equal to its number modulo the size. The invocation that had the
// last winner searches for its next best id.
//
// The file that includes this one defines `float Score(uint id)` after it. All invocations call
// NextRanked, with the last result as `previous`, or kNone for the first.
const uint kNone = 0xffffffffu;

struct Ranked {
  float score;
  uint id;
};

shared float select_scores[gl_WorkGroupSize.x];
shared uint select_ids[gl_WorkGroupSize.x];
Ranked select_own;

float Score(uint id);

bool RanksBefore(Ranked a, Ranked b) {
  if (b.id == kNone) return a.id != kNone;
  return a.id != kNone && (a.score > b.score || (a.score == b.score && a.id < b.id));
}

Ranked NextRanked(uint n, Ranked previous) {
  const uint lane = gl_LocalInvocationID.x;
  if (previous.id == kNone || previous.id % gl_WorkGroupSize.x == lane) {
    select_own = Ranked(0.0, kNone);
    for (uint id = lane; id < n; id += gl_WorkGroupSize.x) {
      const Ranked candidate = Ranked(Score(id), id);
      const bool left = previous.id == kNone || RanksBefore(previous, candidate);
      if (left && RanksBefore(candidate, select_own)) select_own = candidate;
    }
  }
  select_scores[lane] = select_own.score;
  select_ids[lane] = select_own.id;
  barrier();
  for (uint width = gl_WorkGroupSize.x / 2u; width > 0u; width /= 2u) {
    if (lane < width) {
      const Ranked other = Ranked(select_scores[lane + width], select_ids[lane + width]);
      if (RanksBefore(other, Ranked(select_scores[lane], select_ids[lane]))) {
        select_scores[lane] = other.score;
        select_ids[lane] = other.id;
      }
    }
    barrier();
  }
  const Ranked best = Ranked(select_scores[0], select_ids[0]);
  barrier();
  return best;
}
