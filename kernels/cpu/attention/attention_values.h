// Adds up the values of a chunk, weighted with the probabilities of a block's queries. Part of
// attention.cc.
//
// A slice of a value, a few vectors, is read and converted once for up to four queries, whose sums
// of one class (position mod 4) fill the registers. Few queries take several classes at a time.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention/attention_block.h"
#include "kernels/cpu/attention/attention_values_neon.h"
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The number of values of a head that are summed at a time.
#if defined(__x86_64__)
constexpr int kSlice = 2 * kNativeLanes;
#else
constexpr int kSlice = 4 * kNativeLanes;
#endif
static_assert(kChunk * kSlice <= kTileFloats);
using Slice = F32<kSlice>;

constexpr int kSliceRows = 4;  // queries that share a slice in registers

// The most queries that read values in place. For more queries, values are first converted into a
// tile, because each group of queries would convert them again. On Arm, a tile pays with two
// groups.
#if defined(__aarch64__)
constexpr int kMostInPlace = kSliceRows;
#else
constexpr int kMostInPlace = 2 * kSliceRows;
#endif

// The queries of a block that see some of the chunk, and their probabilities.
struct Weighted {
  int count = 0;
  const Query* queries[kMaxQueries];
  const float* p[kMaxQueries];
};

TRINE_INLINE Slice JoinValues(const Query& query, Slice old, Slice sum) {
  if (query.first) return sum;
  return Canon(old * Splat<kSlice>(query.old_weight)) +
         Canon(sum * Splat<kSlice>(query.new_weight));
}

// Joins the chunk's sum to values [first, first + count) of the query's row.
TRINE_INLINE void AddValues(const Query& query, Slice sum, int64_t first, int64_t count) {
  float* o = query.o + first;
  if (count == kSlice) {
    Store(query.first ? sum : JoinValues(query, Load<kSlice>(o), sum), o);
  } else {
    StorePartial(JoinValues(query, LoadPartial<kSlice>(o, count), sum), o, count);
  }
}

// The rows of a chunk's values, and the part of them to sum.
struct ValueRows {
  const std::byte* const* rows;  // by position
  Range part;                    // widened to multiples of four
  int64_t first;                 // the index of the slice's first value in a row
  // The distance of the row to prefetch, in positions (0: none), and the slice's first byte in it.
  int64_t ahead, ahead_byte;
};

// Adds p[t] * row t to the sums of kRows queries, for kClasses classes (position mod 4), the first
// of which is `from_class`.
template <typename Row, int kRows, int kClasses, bool kPrefetches>
TRINE_INLINE void SumClasses(const ValueRows& values, const float* const* p, int from_class,
                             Slice (&sums)[kClasses][kRows]) {
  const ValueRows v = values;
  const float* of_row[kRows];
  for (int i = 0; i < kRows; ++i) of_row[i] = p[i];
  Slice s[kClasses][kRows];
  __builtin_memcpy(&s, &sums, sizeof(s));
  for (int64_t t = v.part.begin + from_class; t < v.part.end; t += 4) {
#pragma GCC unroll 4
    for (int c = 0; c < kClasses; ++c) {
      const Slice value = Row::template Read<kSlice>(v.rows[t + c], v.first);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) s[c][i] += Splat<kSlice>(of_row[i][t + c]) * value;
      if constexpr (kPrefetches) __builtin_prefetch(v.rows[t + c + v.ahead] + v.ahead_byte);
    }
  }
  __builtin_memcpy(&sums, &s, sizeof(s));
}

// The sums of a block's queries between two runs of positions, if a chunk is taken in several runs:
// by query, class and value.
struct CarriedSums {
  float* sums;
  bool load, store;  // a run came before; another run follows

  float* At(int query, int of_class, int64_t width, int64_t first) const {
    return sums + (query * 4 + of_class) * width + first;
  }
};
constexpr int64_t kMostCarried = kTileFloats / (kMostInPlace * 4);  // the most values of a row

// Adds one slice for queries [at, at + kRows), to values [out, out + count) of their rows.
template <typename Row, int kRows>
void AddSlice(const ValueRows& values, const Weighted& weighted, int at, int64_t width, int64_t out,
              int64_t count, const CarriedSums& carried) {
  constexpr int kClasses = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  Slice of_class[4][kRows];
  for (int c = 0; c < 4; c += kClasses) {
    Slice sums[kClasses][kRows];
    for (int j = 0; j < kClasses; ++j) {
      for (int i = 0; i < kRows; ++i) {
        sums[j][i] = carried.load ? Load<kSlice>(carried.At(at + i, c + j, width, out))
                                  : Splat<kSlice>(0.0f);
      }
    }
    if (values.ahead != 0) {
      SumClasses<Row, kRows, kClasses, true>(values, weighted.p + at, c, sums);
    } else {
      SumClasses<Row, kRows, kClasses, false>(values, weighted.p + at, c, sums);
    }
    for (int j = 0; j < kClasses; ++j) {
      for (int i = 0; i < kRows; ++i) {
        if (carried.store) {
          Store(sums[j][i], carried.At(at + i, c + j, width, out));
        } else {
          of_class[c + j][i] = sums[j][i];
        }
      }
    }
  }
  if (carried.store) return;
  for (int i = 0; i < kRows; ++i) {
    const Slice sum = (of_class[0][i] + of_class[2][i]) + (of_class[1][i] + of_class[3][i]);
    AddValues(*weighted.queries[at + i], sum, out, count);
  }
}

// Adds one slice for the queries from `at` on.
template <typename Row>
TRINE_INLINE void AddSlices(const ValueRows& values, const Weighted& weighted, int at,
                            int64_t width, int64_t out, int64_t count, const CarriedSums& carried) {
  for (; at + kSliceRows <= weighted.count; at += kSliceRows) {
    AddSlice<Row, 4>(values, weighted, at, width, out, count, carried);
  }
  switch (weighted.count - at) {
    case 3:
      return AddSlice<Row, 3>(values, weighted, at, width, out, count, carried);
    case 2:
      return AddSlice<Row, 2>(values, weighted, at, width, out, count, carried);
    case 1:
      return AddSlice<Row, 1>(values, weighted, at, width, out, count, carried);
    default:
      return;
  }
}

// Returns the number of positions whose slices are all summed before the next positions: the number
// that stays in a first-level cache.
TRINE_INLINE int64_t PositionsAtOnce(const Call& call) {
  constexpr int64_t kBytes = 32 << 10;
  if (call.v_width > kMostCarried) return kChunk;
  return Least(kChunk, Most(32, RoundDown(kBytes / call.v_bytes, 32)));
}

template <typename Row>
void AddValuesInPlace(Row, const Call& call, Range part, const Weighted& weighted, Block* block) {
  const int64_t at_once = PositionsAtOnce(call);
  for (int64_t begin = part.begin; begin < part.end; begin += at_once) {
    const int64_t end = Least(begin + at_once, part.end);
    const CarriedSums carried = {block->tile, begin > part.begin, end < part.end};
    for (int64_t first = 0; first < call.v_width; first += kSlice) {
      const int64_t ahead = end + at_once <= part.end ? at_once : 0;
      const ValueRows values = {
          block->v_rows, {begin, end}, first, ahead, first * call.v_bytes / call.v_width};
      AddSlices<Row>(values, weighted, 0, call.v_width, first, kSlice, carried);
    }
  }
}

#if defined(__aarch64__)
// Transposes the probabilities in block->p, for four queries at a time: the four of one position
// then lie side by side. A query's row in the block is never before its place in `weighted`, so
// nothing is overwritten that is still needed.
inline void TurnFours(Range part, const Weighted& weighted, Block* block) {
  float turned[4 * kChunk];
  for (int at = 0; at + 4 <= weighted.count; at += 4) {
    const float* const* p = weighted.p + at;
    for (int64_t t = part.begin; t < part.end; t += 4) {
      const auto of_position =
          Transposed(Load<4>(p[0] + t), Load<4>(p[1] + t), Load<4>(p[2] + t), Load<4>(p[3] + t));
      for (int i = 0; i < 4; ++i) Store(of_position.row[i], turned + 4 * (t + i));
    }
    __builtin_memcpy(block->p[at] + 4 * part.begin, turned + 4 * part.begin,
                     static_cast<size_t>(4 * (part.end - part.begin)) * sizeof(float));
  }
}

// Adds one slice, from the tile, for the queries that TurnFours has transposed. Returns the number
// of these queries.
inline int AddSliceInFours(Range part, const Weighted& weighted, int64_t out, int64_t count,
                           const Block& block) {
  static_assert(kSlice == 16);
  int at = 0;
  for (; at + 4 <= weighted.count; at += 4) {
    alignas(64) float sums[4][4][kSlice];  // by class and query
    for (int c = 0; c < 4; ++c) {
      const int64_t t = part.begin + c;
      SumClassOfFour(block.tile + t * kSlice, block.p[at] + 4 * t, part.end - part.begin,
                     sums[c][0]);
    }
    for (int i = 0; i < 4; ++i) {
      const auto of_class = [&](int c) {
        return Load<kSlice>(static_cast<const float*>(sums[c][i]));
      };
      const Slice sum = (of_class(0) + of_class(2)) + (of_class(1) + of_class(3));
      AddValues(*weighted.queries[at + i], sum, out, count);
    }
  }
  return at;
}
#else
inline void TurnFours(Range, const Weighted&, Block*) {}
inline int AddSliceInFours(Range, const Weighted&, int64_t, int64_t, const Block&) { return 0; }
#endif

template <typename Row>
void AddValuesByTile(Row row, const Call& call, Range part, const Weighted& weighted,
                     Block* block) {
  TurnFours(part, weighted, block);
  const std::byte* tile_rows[kChunk];
  for (int64_t t = part.begin; t < part.end; ++t) {
    tile_rows[t] = reinterpret_cast<const std::byte*>(block->tile + t * kSlice);
  }
  for (int64_t first = 0; first < call.v_width; first += kSlice) {
    const int64_t count = Least(kSlice, call.v_width - first);
    for (int64_t t = part.begin; t < part.end; ++t) {
      CopyRow<kSlice>(row, block->v_rows[t], first, count, block->tile + t * kSlice);
    }
    const int at = AddSliceInFours(part, weighted, first, count, *block);
    AddSlices<RowF32>({tile_rows, part, 0, 0, 0}, weighted, at, call.v_width, first, count, {});
  }
}

// Adds the chunk's values to the queries' rows. The part is widened to multiples of four; a query's
// probabilities are zero at positions that it does not see.
template <typename Row>
TRINE_INLINE void AddAllValues(Row row, const Call& call, Range part, const Weighted& weighted,
                               Block* block) {
  part = {RoundDown(part.begin, 4), RoundUp(part.end, 4)};
  if (weighted.count <= kMostInPlace && call.v_width % kSlice == 0) {
    return AddValuesInPlace(row, call, part, weighted, block);
  }
  AddValuesByTile(row, call, part, weighted, block);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
