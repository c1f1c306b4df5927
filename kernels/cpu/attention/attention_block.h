// A block of query rows that go through the cache together, and where the rows of the cache lie.
// Part of attention.cc.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/row_readers.h"
#include "kernels/reference/ops.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using reference::AttentionInputs;
using reference::AttentionParams;
using reference::Range;
using reference::View;

constexpr int64_t kChunk = 256;
// The most query rows that go through the cache together. More rows share the cost of converting
// the cache. If that cost is low, fewer rows are better: they leave room in a small first-level
// cache.
#if defined(__aarch64__)
constexpr int kMaxQueries = 32;
#else
constexpr int kMaxQueries = 16;
#endif
constexpr int64_t kQueryFloats = 16 * 256;  // a block of wider heads has fewer rows
constexpr int64_t kTileFloats = 8192;
constexpr int64_t kMaxWidth = 2048;  // so that a block holds two queries

TRINE_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
TRINE_INLINE int64_t Most(int64_t a, int64_t b) { return a > b ? a : b; }
TRINE_INLINE int64_t RoundDown(int64_t x, int64_t step) { return x / step * step; }
TRINE_INLINE int64_t RoundUp(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
TRINE_INLINE bool IsEmpty(Range range) { return range.begin >= range.end; }
TRINE_INLINE Range Intersection(Range a, Range b) {
  return {Most(a.begin, b.begin), Least(a.end, b.end)};
}

// One row of the output. The chunks joined so far have the maximum m, the sum l and the weighted
// values o.
struct Query {
  float* o;
  int64_t head;
  Range visible;  // positions; not empty
  bool joined;    // true: m and l are set
  float m, l;
  // The current chunk: its visible positions, counted from its first, and the factors of the joined
  // chunks and of this chunk. The first chunk needs no factors.
  Range part;
  bool first;
  float old_weight, new_weight;
};

// The operands of one call.
struct Call {
  const AttentionInputs& in;
  const AttentionParams& params;
  int64_t k_width;  // padded to a multiple of 32
  int64_t v_width;
  int64_t k_bytes, v_bytes;  // the sizes of a row
  int max_queries;
};

// A block of query rows with everything they need: up to 96 KB of stack.
struct Block {
  int64_t sequence;
  int64_t kv_head;
  int count;
  Query queries[kMaxQueries];
  alignas(64) float q[kQueryFloats];         // rows padded with zeros to a multiple of 32
  alignas(64) float p[kMaxQueries][kChunk];  // SumClassOfFour reads beyond its end without effect
  alignas(64) float tile[kTileFloats];
  alignas(64) float dots[kMaxQueries][16];  // for each of four keys, four partial sums
  alignas(64) float sums[kMaxQueries][32];  // the partial sums of one key, between passes
  const std::byte* k_rows[kChunk];
  const std::byte* v_rows[kChunk];
};

// Prefetches a row. Inlined, because GCC drops a call to a function that only prefetches.
TRINE_INLINE void Prefetch(const std::byte* row, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

// Prefetches value t and a later key, when key t is about to be read. A processor does not foresee
// these reads: rows lie apart from each other, and values are read a slice at a time.
TRINE_INLINE void PrefetchAt(int64_t t, Range part, const Call& call, const Block& block) {
  constexpr int64_t kAhead = 16;
  if (t + kAhead < part.end) Prefetch(block.k_rows[t + kAhead], call.k_bytes);
  Prefetch(block.v_rows[t], call.v_bytes);
}

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

// Finds the rows of positions [base + part.begin, base + part.end) of a sequence and kv head:
// rows[t] for position base + t. The range is widened to multiples of four. Positions beyond its
// ends, which may not exist, get the nearest row of the range.
inline void FindRows(const View& cache, const int32_t* blocks, int64_t kv_head, int64_t base,
                     Range part, const std::byte** rows) {
  const int64_t block_positions = cache.dims[1];
  int64_t index = (base + part.begin) / block_positions;
  int64_t offset = (base + part.begin) % block_positions;
  for (int64_t t = part.begin; t < part.end; ++index, offset = 0) {
    const std::byte* row = RowAt(cache, offset, kv_head, blocks[index]);
    const int64_t left = block_positions - offset;
    const int64_t end = left < part.end - t ? t + left : part.end;
    for (; t < end; ++t, row += cache.strides[1]) rows[t] = row;
  }
  for (int64_t t = part.begin & ~int64_t{3}; t < part.begin; ++t) rows[t] = rows[part.begin];
  for (int64_t t = part.end; t % 4 != 0; ++t) rows[t] = rows[part.end - 1];
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
