// The values of a chunk, weighted with the probabilities of a block's queries. Part of
// attention.cc.
//
// A slice of a value, a few vectors, is read and converted once for up to four queries, whose sums
// of one class (position mod 4) fill the registers. Few queries take several classes at a time.

#ifndef TRINE_KERNELS_CPU_ATTENTION_VALUES_H_
#define TRINE_KERNELS_CPU_ATTENTION_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Values of a head that are summed at a time.
#if defined(__x86_64__)
constexpr int kSlice = 2 * kNativeLanes;
#else
constexpr int kSlice = 4 * kNativeLanes;
#endif
static_assert(kChunk * kSlice <= kTileFloats);
using Slice = F32<kSlice>;

constexpr int kSliceRows = 4;  // queries that share a slice in registers

// Above so many queries values are converted into a tile first: more than two groups would each
// convert them again.
constexpr int kMostInPlace = 2 * kSliceRows;

// The queries of a block that see something of the chunk, and their probabilities.
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

// The sums over positions t of the part, widened to multiples of four, with t mod 4 in
// [kClass, kClass + kClasses), of p[t] * row_of(t)[first ..], for each of kRows queries.
template <typename Row, int kRows, int kClasses, typename RowOf>
TRINE_INLINE void SumClasses(const float* const* p, Range part, int kClass, int64_t first,
                             RowOf row_of, Slice (&sums)[4][kRows]) {
  Slice s[kClasses][kRows];
  for (auto& of_class : s) {
    for (Slice& sum : of_class) sum = Splat<kSlice>(0.0f);
  }
  for (int64_t t = RoundDown(part.begin, 4) + kClass; t < part.end + kClass; t += 4) {
#pragma GCC unroll 4
    for (int c = 0; c < kClasses; ++c) {
      const Slice v = Row::template Read<kSlice>(row_of(t + c), first);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) s[c][i] += Splat<kSlice>(p[i][t + c]) * v;
    }
  }
  for (int c = 0; c < kClasses; ++c) {
    for (int i = 0; i < kRows; ++i) sums[kClass + c][i] = s[c][i];
  }
}

template <typename Row, int kRows, typename RowOf>
void AddSlice(const Weighted& weighted, int from, Range part, int64_t first, int64_t out_first,
              int64_t out_count, RowOf row_of) {
  const float* p[kRows];
  for (int i = 0; i < kRows; ++i) p[i] = weighted.p[from + i];
  constexpr int kClasses = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  Slice sums[4][kRows];
  for (int c = 0; c < 4; c += kClasses) {
    SumClasses<Row, kRows, kClasses>(p, part, c, first, row_of, sums);
  }
  for (int i = 0; i < kRows; ++i) {
    const Slice sum = (sums[0][i] + sums[2][i]) + (sums[1][i] + sums[3][i]);
    AddValues(*weighted.queries[from + i], sum, out_first, out_count);
  }
}

// One slice for all queries; `first` is where it lies in the rows that are read.
template <typename Row, typename RowOf>
TRINE_INLINE void AddSlices(const Weighted& weighted, Range part, int64_t first, int64_t out_first,
                            int64_t out_count, RowOf row_of) {
  int at = 0;
  for (; at + kSliceRows <= weighted.count; at += kSliceRows) {
    AddSlice<Row, kSliceRows>(weighted, at, part, first, out_first, out_count, row_of);
  }
  switch (weighted.count - at) {
    case 3:
      return AddSlice<Row, 3>(weighted, at, part, first, out_first, out_count, row_of);
    case 2:
      return AddSlice<Row, 2>(weighted, at, part, first, out_first, out_count, row_of);
    case 1:
      return AddSlice<Row, 1>(weighted, at, part, first, out_first, out_count, row_of);
    default:
      return;
  }
}

// Adds the chunk's values to the queries' rows. Their probabilities are zero at the positions of the
// part, widened to multiples of four, that they do not see.
template <typename Row>
void AddAllValues(Row row, const Call& call, Range part, const Weighted& weighted, Block* block) {
  if (weighted.count <= kMostInPlace && call.v_width % kSlice == 0) {
    for (int64_t first = 0; first < call.v_width; first += kSlice) {
      AddSlices<Row>(weighted, part, first, first, kSlice,
                     [block](int64_t t) { return block->v_rows[t]; });
    }
    return;
  }
  const int64_t top = RoundDown(part.begin, 4);
  for (int64_t first = 0; first < call.v_width; first += kSlice) {
    const int64_t count = Least(kSlice, call.v_width - first);
    for (int64_t t = top; t < RoundUp(part.end, 4); ++t) {
      CopyRow<kSlice>(row, block->v_rows[t], first, count, block->tile + (t - top) * kSlice);
    }
    AddSlices<RowF32>(weighted, part, 0, first, count, [block, top](int64_t t) {
      return reinterpret_cast<const std::byte*>(block->tile + (t - top) * kSlice);
    });
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_ATTENTION_VALUES_H_
