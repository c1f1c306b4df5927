// Takes a block of query rows through one chunk of 256 positions: scores, probabilities, weighted
// values. Part of attention.cc, which makes the blocks.
//
// The choice of the rows in a block changes no bit: every row has its own sums, in the order of
// docs/numerics.md.

#pragma once

#include <cstdint>

#include "kernels/cpu/attention/attention_block.h"
#include "kernels/cpu/attention/attention_scores.h"
#include "kernels/cpu/attention/attention_values.h"
#include "kernels/cpu/simd/map_row.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

template <int N>
TRINE_INLINE I32<N> LanesFrom(int64_t first) {
  if constexpr (I32<N>::kIsNative) {
    int32_t lanes[N];
    for (int i = 0; i < N; ++i) lanes[i] = i;
    return Load<N>(lanes) + Splat<N>(static_cast<int32_t>(first));
  } else {
    return {LanesFrom<N / 2>(first), LanesFrom<N / 2>(first + N / 2)};
  }
}

// Returns x in the lanes of positions [first, first + N) that are in the part, else `outside`.
template <int N>
TRINE_INLINE F32<N> Masked(F32<N> x, int64_t first, Range part, float outside) {
  const I32<N> t = LanesFrom<N>(first);
  const I32<N> inside = (t >= Splat<N>(static_cast<int32_t>(part.begin))) &
                        (t < Splat<N>(static_cast<int32_t>(part.end)));
  return Select(inside, x, Splat<N>(outside));
}

// Calls function(t, mask) for every multiple of 32 at which some of positions [t, t + 32) are in
// the part. mask(x, first, outside) returns Masked, or x itself if all 32 positions are inside.
template <typename Function>
TRINE_INLINE void ForThirtyTwo(Range part, Function function) {
  for (int64_t t = RoundDown(part.begin, 32); t < part.end; t += 32) {
    if (t >= part.begin && t + 32 <= part.end) {
      function(t, [](auto x, int64_t, float) { return x; });
    } else {
      function(
          t, [&](auto x, int64_t first, float outside) { return Masked(x, first, part, outside); });
    }
  }
}

// Turns dot products into scores. Returns the largest.
template <bool kHasCap>
float ScaleScores(const AttentionParams& params, Range part, float* p) {
  using Value = F32<kRowLanes>;
  const Value scale = Splat<kRowLanes>(params.scale);
  const Value cap = Splat<kRowLanes>(params.softcap);
  const Value inverse_cap = Recip(cap);
  Value largest = Splat<kRowLanes>(-kHuge);
  ForThirtyTwo(part, [&](int64_t t, auto mask) {
    for (int64_t i = t; i < t + 32; i += kRowLanes) {
      Value score = Canon(Load<kRowLanes>(p + i) * scale);
      if constexpr (kHasCap) score = SoftcapValue(score, cap, inverse_cap);
      largest = Max(largest, mask(score, i, -kHuge));
      Store(score, p + i);
    }
  });
  return MaxLane(largest);
}

// Turns scores into probabilities. Writes zeros outside the part, up to multiples of 32; they
// change no class of the sum. Returns the sum. REQUIRES: no score inside the part is above m.
inline float Exponentials(float m, Range part, float* p) {
  F32x32 sums = Splat<32>(0.0f);
  ForThirtyTwo(part, [&](int64_t t, auto mask) {
    for (int64_t i = t; i < t + 32; i += kRowLanes) {
      const auto exp = ExpUpTo44(Load<kRowLanes>(p + i) - Splat<kRowLanes>(m));
      Store(mask(exp, i, 0.0f), p + i);
    }
    sums += Load<32>(p + t);
  });
  return JoinSums(sums);
}

// Joins a chunk, with maximum m and sum l, to the query's chunks so far.
inline void Join(float m, float l, Query* query) {
  query->first = !query->joined;
  if (query->first) {
    query->joined = true;
    query->m = m;
    query->l = l;
    return;
  }
  const float larger = m > query->m ? m : query->m;
  query->old_weight = Exp(query->m - larger);
  query->new_weight = Exp(m - larger);
  query->l = Canon(query->l * query->old_weight) + Canon(l * query->new_weight);
  query->m = larger;
}

// Turns a query's dot products with a chunk into probabilities, and joins the chunk to the query.
inline void Probabilities(const AttentionParams& params, Query* query, float* p) {
  const Range part = query->part;
  // The lanes next to the dot products are read, so they must hold numbers.
  for (int64_t t = RoundDown(part.begin, 32); t < RoundDown(part.begin, 4); ++t) p[t] = 0.0f;
  for (int64_t t = RoundUp(part.end, 4); t < RoundUp(part.end, 32); ++t) p[t] = 0.0f;
  const float m = params.softcap != 0.0f ? ScaleScores<true>(params, part, p)
                                         : ScaleScores<false>(params, part, p);
  Join(m, Exponentials(m, part, p), query);
}

// Adds the chunk that starts at position `base`. Queries see its positions in `part`.
inline void AddChunk(const Call& call, int64_t base, Range part, Block* block) {
  for (int i = 0; i < block->count; ++i) {
    Query& query = block->queries[i];
    query.part = Intersection({query.visible.begin - base, query.visible.end - base}, part);
  }
  const auto* blocks =
      reinterpret_cast<const int32_t*>(RowAt(call.in.block_table, block->sequence));
  FindRows(call.in.k, blocks, block->kv_head, base, part, block->k_rows);
  FindRows(call.in.v, blocks, block->kv_head, base, part, block->v_rows);

  WithRowOf(call.in.k.type, [&](auto row) { Dots(row, call, part, block); });
  Weighted weighted;
  for (int i = 0; i < block->count; ++i) {
    Query& query = block->queries[i];
    if (IsEmpty(query.part)) continue;
    float* p = block->p[i];
    Probabilities(call.params, &query, p);
    for (int64_t t = RoundDown(part.begin, 4); t < RoundDown(query.part.begin, 32); ++t)
      p[t] = 0.0f;
    for (int64_t t = RoundUp(query.part.end, 32); t < RoundUp(part.end, 4); ++t) p[t] = 0.0f;
    weighted.queries[weighted.count] = &query;
    weighted.p[weighted.count++] = p;
  }
  WithRowOf(call.in.v.type, [&](auto row) { AddAllValues(row, call, part, weighted, block); });
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
