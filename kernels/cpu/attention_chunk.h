// What a block of query rows does with one chunk of 256 positions: scores, probabilities, weighted
// values. Part of attention.cc, which makes the blocks.
//
// With one row in the block the cache is read in place. With more, keys and values are converted to
// f32 once for all of them, into a tile that stays in the first-level cache. Which it is, and which
// rows meet in a block, changes no bit: every row has its own sums, in the order of
// docs/numerics.md.

#ifndef TRINE_KERNELS_CPU_ATTENTION_CHUNK_H_
#define TRINE_KERNELS_CPU_ATTENTION_CHUNK_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/row_readers.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"
#include "kernels/reference/ops.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using reference::AttentionInputs;
using reference::AttentionParams;

constexpr int64_t kChunk = 256;
constexpr int kMaxQueries = 16;
constexpr int64_t kQueryFloats = kMaxQueries * 256;  // wider heads come in smaller blocks
constexpr int64_t kTileFloats = 8192;
constexpr int64_t kMaxWidth = 2048;  // so that a block has two queries, a tile of keys four rows

// Values of a head that are summed at a time: four sums of so many, in registers.
#if defined(__x86_64__)
constexpr int kSlice = 2 * kNativeLanes;
#else
constexpr int kSlice = 4 * kNativeLanes;
#endif
static_assert(kChunk * kSlice <= kTileFloats);

TRINE_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
TRINE_INLINE int64_t Most(int64_t a, int64_t b) { return a > b ? a : b; }
TRINE_INLINE int64_t RoundDown(int64_t x, int64_t step) { return x / step * step; }
TRINE_INLINE int64_t RoundUp(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
TRINE_INLINE bool IsEmpty(Range range) { return range.begin >= range.end; }
TRINE_INLINE Range Intersection(Range a, Range b) {
  return {Most(a.begin, b.begin), Least(a.end, b.end)};
}

// One output row. The chunks joined so far have maximum m, sum l and, in the row itself, weighted
// values o.
struct Query {
  float* o;
  int64_t head;
  Range visible;  // positions; not empty
  bool joined;    // whether m and l hold anything yet
  float m, l;
  // Of the chunk at hand: its visible positions, counted from the chunk's first, and how what is
  // joined and what is new are weighted. The first chunk is taken as it is.
  Range part;
  bool first;
  float old_weight, new_weight;
};

// Rows lie apart from each other, and values are read a slice at a time: more than a processor's
// own prefetching sees through.
TRINE_INLINE void Prefetch(const std::byte* row, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

// What one call works on.
struct Call {
  const AttentionInputs& in;
  const AttentionParams& params;
  const View& dst;
  int64_t k_width;  // padded
  int64_t v_width;
  int64_t k_bytes, v_bytes;  // of a row
  int max_queries;
};

// The query rows at work, with everything they need: about 70 KB of stack.
struct Block {
  int64_t sequence;
  int64_t kv_head;
  int count;
  Query queries[kMaxQueries];
  alignas(64) float q[kQueryFloats];  // rows padded with zeros to a multiple of 32
  alignas(64) float p[kMaxQueries][kChunk];
  alignas(64) float tile[kTileFloats];
  const std::byte* k_rows[kChunk];
  const std::byte* v_rows[kChunk];

  // Called when key t is about to be read: asks for a key soon to come and for a value.
  void PrefetchAt(int64_t t, Range part, const Call& call) const {
    constexpr int64_t kAhead = 16;
    if (t + kAhead < part.end) Prefetch(k_rows[t + kAhead], call.k_bytes);
    Prefetch(v_rows[t], call.v_bytes);
  }
};

// --- Where the rows are

// Calls function(Row()) with the reader of a cache's type.
template <typename Function>
TRINE_INLINE void WithRowOf(quant::Type type, Function function) {
  switch (type) {
    case quant::Type::kF16:
      return function(RowF16());
    case quant::Type::kBF16:
      return function(RowBF16());
    case quant::Type::kQ8_KV:
      return function(RowQ8Kv());
    default:
      return function(RowF32());
  }
}

// Where the rows of positions [base + part.begin, base + part.end) of a sequence and kv head lie:
// rows[t] for position base + t. The range is widened to multiples of four; the positions beyond
// its ends, which may not exist, are given the nearest row that does.
inline void FindRows(const View& cache, const int32_t* blocks, int64_t kv_head, int64_t base,
                     Range part, const std::byte** rows) {
  const int64_t block_positions = cache.dims[1];
  int64_t index = (base + part.begin) / block_positions;
  int64_t offset = (base + part.begin) % block_positions;
  for (int64_t t = part.begin; t < part.end; ++index, offset = 0) {
    const std::byte* row = BytesAt(cache, offset, kv_head, blocks[index]);
    const int64_t left = block_positions - offset;
    const int64_t end = left < part.end - t ? t + left : part.end;
    for (; t < end; ++t, row += cache.strides[1]) rows[t] = row;
  }
  for (int64_t t = part.begin & ~int64_t{3}; t < part.begin; ++t) rows[t] = rows[part.begin];
  for (int64_t t = part.end; t % 4 != 0; ++t) rows[t] = rows[part.end - 1];
}

// --- Scores

// The last four partial sums of a dot product.
template <typename Row>
TRINE_INLINE F32x4 Dot(Row, const float* q, const std::byte* k, int64_t width) {
  F32x32 sums = Splat<32>(0.0f);
  for (int64_t i = 0; i < width; i += 32) sums += Load<32>(q + i) * Row::template Read<32>(k, i);
  return JoinToFour(sums);
}

// Dot products with the keys of positions [begin, end), multiples of four. row_of(t) is a key.
template <typename Row, typename RowOf>
TRINE_INLINE void DotAll(Row row, const float* q, int64_t width, int64_t begin, int64_t end,
                         RowOf row_of, float* scores) {
  for (int64_t t = begin; t < end; t += 4) {
    const F32x4 a = Dot(row, q, row_of(t), width);
    const F32x4 b = Dot(row, q, row_of(t + 1), width);
    const F32x4 c = Dot(row, q, row_of(t + 2), width);
    const F32x4 d = Dot(row, q, row_of(t + 3), width);
    Store(JoinSums(a, b, c, d), scores + t);
  }
}

template <typename Row>
void ScoresInPlace(Row row, const Call& call, Block* block) {
  const Range part = block->queries[0].part;
  const auto row_of = [&](int64_t t) {
    block->PrefetchAt(t, part, call);
    return block->k_rows[t];
  };
  DotAll(row, block->q, call.k_width, RoundDown(part.begin, 4), RoundUp(part.end, 4), row_of,
         block->p[0]);
}

template <typename Row>
void ScoresByTile(Row row, const Call& call, Range part, Block* block) {
  const int64_t tile_rows = Least(32, RoundDown(kTileFloats / call.k_width, 4));
  const int64_t end = RoundUp(part.end, 4);
  for (int64_t first = RoundDown(part.begin, 4); first < end; first += tile_rows) {
    const int64_t last = Least(first + tile_rows, end);
    for (int64_t t = first; t < last; ++t) {
      block->PrefetchAt(t, part, call);
      CopyRow<32>(row, block->k_rows[t], 0, call.in.k.dims[0],
                  block->tile + (t - first) * call.k_width);
    }
    const auto tile_row = [&](int64_t t) {
      return reinterpret_cast<const std::byte*>(block->tile + (t - first) * call.k_width);
    };
    for (int i = 0; i < block->count; ++i) {
      const Range wanted = block->queries[i].part;
      DotAll(RowF32(), block->q + i * call.k_width, call.k_width,
             Most(first, RoundDown(wanted.begin, 4)), Least(last, RoundUp(wanted.end, 4)), tile_row,
             block->p[i]);
    }
  }
}

// --- Probabilities

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

TRINE_INLINE I32<kLanes> Inside(int64_t first, Range part) {
  const I32<kLanes> t = LanesFrom<kLanes>(first);
  return (t >= Splat<kLanes>(static_cast<int32_t>(part.begin))) &
         (t < Splat<kLanes>(static_cast<int32_t>(part.end)));
}

// Dot products to scores. Returns the largest.
template <bool kHasCap>
float ScaleScores(const AttentionParams& params, Range part, float* p) {
  using Value = F32<kLanes>;
  const Value scale = Splat<kLanes>(params.scale);
  const Value cap = Splat<kLanes>(params.softcap);
  const Value inverse_cap = Recip(cap);
  Value largest = Splat<kLanes>(-kHuge);
  for (int64_t t = RoundDown(part.begin, kLanes); t < part.end; t += kLanes) {
    Value score = Canon(Load<kLanes>(p + t) * scale);
    if constexpr (kHasCap) score = SoftcapValue(score, cap, inverse_cap);
    largest = Max(largest, Select(Inside(t, part), score, Splat<kLanes>(-kHuge)));
    Store(score, p + t);
  }
  return MaxLane(largest);
}

// Scores to probabilities, zeros outside the part: up to multiples of 32, where they leave the
// classes of the sum as they are. Returns the sum.
inline float Exponentials(float m, Range part, float* p) {
  F32x32 sums = Splat<32>(0.0f);
  for (int64_t t = RoundDown(part.begin, 32); t < part.end; t += 32) {
    for (int64_t i = t; i < t + 32; i += kLanes) {
      const auto exp = Exp(Load<kLanes>(p + i) - Splat<kLanes>(m));
      Store(ZeroUnless(Inside(i, part), exp), p + i);
    }
    sums += Load<32>(p + t);
  }
  return JoinSums(sums);
}

// Joins a chunk of maximum m and sum l to what the query has.
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

inline void Probabilities(const AttentionParams& params, Query* query, float* p) {
  const Range part = query->part;
  // The lanes beside the dot products are read, so they must hold numbers.
  for (int64_t t = RoundDown(part.begin, 32); t < RoundDown(part.begin, 4); ++t) p[t] = 0.0f;
  for (int64_t t = RoundUp(part.end, 4); t < RoundUp(part.end, 32); ++t) p[t] = 0.0f;
  const float m = params.softcap != 0.0f ? ScaleScores<true>(params, part, p)
                                         : ScaleScores<false>(params, part, p);
  Join(m, Exponentials(m, part, p), query);
}

// --- Values

using Slice = F32<kSlice>;

// The sum over the part of p_t * row_of(t)[first ..], in four classes.
template <typename Row, typename RowOf>
TRINE_INLINE Slice WeightedSum(const float* p, Range part, int64_t first, RowOf row_of) {
  Slice s0 = Splat<kSlice>(0.0f), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t t = RoundDown(part.begin, 4); t < part.end; t += 4) {
    s0 += Splat<kSlice>(p[t]) * Row::template Read<kSlice>(row_of(t), first);
    s1 += Splat<kSlice>(p[t + 1]) * Row::template Read<kSlice>(row_of(t + 1), first);
    s2 += Splat<kSlice>(p[t + 2]) * Row::template Read<kSlice>(row_of(t + 2), first);
    s3 += Splat<kSlice>(p[t + 3]) * Row::template Read<kSlice>(row_of(t + 3), first);
  }
  return (s0 + s2) + (s1 + s3);
}

TRINE_INLINE Slice JoinValues(const Query& query, Slice old, Slice sum) {
  if (query.first) return sum;
  return Canon(old * Splat<kSlice>(query.old_weight)) +
         Canon(sum * Splat<kSlice>(query.new_weight));
}

// Joins the chunk's sum to values [first, first + count) of the query's row.
TRINE_INLINE void AddValues(const Query& query, Slice sum, int64_t first, int64_t count) {
  float* o = query.o + first;
  if (count == kSlice) {
    Store(JoinValues(query, Load<kSlice>(o), sum), o);
  } else {
    StorePartial(JoinValues(query, LoadPartial<kSlice>(o, count), sum), o, count);
  }
}

template <typename Row>
void ValuesInPlace(Row, const Call& call, Block* block) {
  const Query& query = block->queries[0];
  for (int64_t first = 0; first < call.v_width; first += kSlice) {
    const Slice sum = WeightedSum<Row>(block->p[0], query.part, first,
                                       [&](int64_t t) { return block->v_rows[t]; });
    AddValues(query, sum, first, kSlice);
  }
}

template <typename Row>
void ValuesByTile(Row row, const Call& call, Range part, Block* block) {
  const int64_t top = RoundDown(part.begin, 4);
  const auto tile_row = [&](int64_t t) {
    return reinterpret_cast<const std::byte*>(block->tile + (t - top) * kSlice);
  };
  for (int64_t first = 0; first < call.v_width; first += kSlice) {
    const int64_t count = Least(kSlice, call.v_width - first);
    for (int64_t t = top; t < RoundUp(part.end, 4); ++t) {
      CopyRow<kSlice>(row, block->v_rows[t], first, count, block->tile + (t - top) * kSlice);
    }
    for (int i = 0; i < block->count; ++i) {
      const Query& query = block->queries[i];
      if (IsEmpty(query.part)) continue;
      AddValues(query, WeightedSum<RowF32>(block->p[i], query.part, 0, tile_row), first, count);
    }
  }
}

// --- All of it

// The chunk that starts at position `base`, of whose positions some query sees those in `part`.
inline void AddChunk(const Call& call, int64_t base, Range part, Block* block) {
  for (int i = 0; i < block->count; ++i) {
    Query& query = block->queries[i];
    query.part = Intersection({query.visible.begin - base, query.visible.end - base}, part);
  }
  const auto* blocks =
      reinterpret_cast<const int32_t*>(BytesAt(call.in.block_table, block->sequence));
  FindRows(call.in.k, blocks, block->kv_head, base, part, block->k_rows);
  FindRows(call.in.v, blocks, block->kv_head, base, part, block->v_rows);

  const bool alone = block->count == 1;
  WithRowOf(call.in.k.type, [&](auto row) {
    if (alone && call.k_width == call.in.k.dims[0]) return ScoresInPlace(row, call, block);
    ScoresByTile(row, call, part, block);
  });
  for (int i = 0; i < block->count; ++i) {
    Query& query = block->queries[i];
    if (!IsEmpty(query.part)) Probabilities(call.params, &query, block->p[i]);
  }
  WithRowOf(call.in.v.type, [&](auto row) {
    if (alone && call.v_width % kSlice == 0) return ValuesInPlace(row, call, block);
    ValuesByTile(row, call, part, block);
  });
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_ATTENTION_CHUNK_H_
