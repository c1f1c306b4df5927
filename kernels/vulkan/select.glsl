// The best of n scores, one after the other: highest first, equal ones by lowest id. Each invocation
// of the workgroup, whose size is a power of two, keeps the best of its own ids (those equal to its
// number modulo the size); who held the last winner looks for its next.
//
// The includer defines `float Score(uint id)` after this file. All invocations call NextRanked, with
// `previous` the last result or kNone for the first.
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
