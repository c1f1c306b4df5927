#include "kernels/hip/attention/attention_args.h"

namespace trine::hip {
namespace {

constexpr uint32_t kThreads = 64;
constexpr uint32_t kColumns = 4 * kLanes;  // columns of a group of lanes
constexpr int32_t kAtOnce = 8;             // chunks that are loaded ahead; divides 32

// The weights of 32 chunks, found by 32 lanes at once. A chunk's weights depend only on maxima, and
// the largest maximum before a chunk can be found by a tree. Only multiplications and additions
// remain to be done in order.
struct ChunkWeights {
  float before, chunk, l;

  // Lane i has chunk `first` + i. *m is the largest maximum of all chunks before; adds these to it.
  TRINE_DEVICE ChunkWeights(const float* sums, int32_t first, int32_t count, float* m) {
    const auto lane = static_cast<int32_t>(ThreadX() % kLanes);
    const bool ours = first + lane < count;
    const float own = ours ? sums[2 * (first + lane)] : -quant::kHuge;
    l = ours ? sums[2 * (first + lane) + 1] : 0.0f;
    float most = own;  // over lanes up to this one
    TRINE_UNROLL
    for (int32_t step = 1; step < kLanes; step *= 2) {
      const float other = LaneRead(most, lane >= step ? lane - step : lane);
      most = Larger(most, other);
    }
    const float others = LaneRead(most, lane > 0 ? lane - 1 : 0);
    const float earlier = lane > 0 ? Larger(*m, others) : *m;
    most = Larger(most, *m);
    before = Exp(earlier - most);
    chunk = Exp(own - most);
    *m = LaneRead(most, kLanes - 1);
  }
};

TRINE_DEVICE void AddChunk(bool first, const Float4& v, float chunk_l, JoinWeights w, float (&o)[4],
                           float* l) {
  *l = first ? chunk_l : JoinValue(*l, chunk_l, w);
  o[0] = first ? v.x : JoinValue(o[0], v.x, w);
  o[1] = first ? v.y : JoinValue(o[1], v.y, w);
  o[2] = first ? v.z : JoinValue(o[2], v.z, w);
  o[3] = first ? v.w : JoinValue(o[3], v.w, w);
}

// Joins the chunks. 32 lanes have four columns each of one (token, head).
TRINE_KERNEL(kThreads) JoinKernel(AttentionArgs args) {
  BeginAfterEarlier();
  const uint32_t lane = ThreadX() % kLanes;
  const uint32_t pieces = (args.v.width + kColumns - 1) / kColumns;
  const uint32_t item = BlockX() * (kThreads / kLanes) + ThreadX() / kLanes;
  const uint32_t row = item / pieces, i = item % pieces * kColumns + 4 * lane;
  const uint32_t token = row / args.heads, head = row % args.heads;
  if (token >= args.tokens) return;  // all 32 lanes
  const bool ours = i < args.v.width;
  const Seen seen = SeenBy(args, static_cast<int32_t>(token));
  float o[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (!seen.nothing()) {
    const int32_t count = (seen.end - 1) / kChunk - seen.begin / kChunk + 1;
    const int64_t at = static_cast<int64_t>(row) * args.chunks;
    const float* sums = args.scratch_sums + 2 * at;
    const float* values = args.scratch_values + at * args.padded_width + (ours ? i : 0);
    Joined state = {sums[0], 0.0f};
    for (int32_t first = 0; first < count; first += kLanes) {
      const ChunkWeights weights(sums, first, count, &state.m);
      const int32_t here = count - first < kLanes ? count - first : kLanes;
      for (int32_t base = 0; base < here; base += kAtOnce) {
        Float4 v[kAtOnce];
        TRINE_UNROLL
        for (int32_t k = 0; k < kAtOnce; ++k) {
          const int32_t c = base + k < here ? base + k : base;
          v[k] = *reinterpret_cast<const Float4*>(values + static_cast<int64_t>(first + c) *
                                                               args.padded_width);
        }
        TRINE_UNROLL
        for (int32_t k = 0; k < kAtOnce; ++k) {
          const int32_t c = base + k;
          const JoinWeights w = {LaneRead(weights.before, c), LaneRead(weights.chunk, c)};
          const float l = LaneRead(weights.l, c);
          if (c < here) AddChunk(first + c == 0, v[k], l, w, o, &state.l);
        }
      }
    }
    const Finish finish = FinishOf(args, head, state);
    for (float& value : o) value = finish(args, value);
  }
  PutOutput(args, head, token, i, o, ours);
}

}  // namespace

Launch JoinLaunch(const AttentionArgs& args) {
  const uint32_t pieces = (args.v.width + kColumns - 1) / kColumns;
  const uint32_t items = args.tokens * args.heads * pieces;
  const uint32_t at_once = kThreads / kLanes;
  return MakeLaunch(JoinKernel, {(items + at_once - 1) / at_once}, {kThreads}, args);
}

}  // namespace trine::hip
