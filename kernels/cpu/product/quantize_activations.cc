#include <cstddef>
#include <cstdint>

#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/product/activation_records.h"
#include "kernels/cpu/product/paired_columns.h"
#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/half.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr float kOneOver127 = 0x1.020408p-7f;  // 3C010204

// Four candidates for the largest magnitude of each block, and four partial sums of each half. A
// chunk is read twice, first for its eight scales: a scale takes long to compute, and eight at a
// time cost little more than one.
struct BlockLanes {
  F32x4 largest[quant::kSuperGroups];
  I32x4 half_sum[2][quant::kSuperGroups];
};

TRINE_INLINE F32x4 LargestOf(const float* x) {
  const auto largest = Max(Abs(Load<16>(x)), Abs(Load<16>(x + 16)));
  const auto of_eight = Max(Low(largest), High(largest));
  return Max(Low(of_eight), High(of_eight));
}

// Quantises 16 values. They need no clamp: apart from four roundings, abs(x) * inverse is at most
// 127. Returns four partial sums.
TRINE_INLINE I32x4 QuantizeHalf(const float* x, F32x16 inverse, int8_t* to) {
  const F32x16 shifted = Load<16>(x) * inverse + Splat<16>(12582912.0f);
  const I32x16 q = BitCast<int32_t>(shifted) - Splat<16>(0x4b400000);
  StoreNarrowed(q, to);
  return JoinToFour(q);
}

template <typename T>
TRINE_INLINE Vec<T, 8> JoinSumsOf(const Vec<T, 4> (&of)[8]) {
  return Join(JoinSums(of[0], of[1], of[2], of[3]), JoinSums(of[4], of[5], of[6], of[7]));
}

// Quantises the first eight of `count` blocks as quant::QuantizeActivation does. Missing blocks
// become zeros.
void QuantizeChunk(const float* x, int64_t count, ActivationChunk* chunk) {
  static_assert(quant::kSuperGroups == 8 && quant::kGroupValues == 32);
  if (count < 8) __builtin_memset(chunk, 0, sizeof(*chunk));
  const int blocks = count < 8 ? static_cast<int>(count) : 8;
  BlockLanes lanes = {};
  for (int b = 0; b < blocks; ++b) lanes.largest[b] = LargestOf(x + 32 * b);
  const auto& most = lanes.largest;
  const F32x8 a = Join(MaxLanes(most[0], most[1], most[2], most[3]),
                       MaxLanes(most[4], most[5], most[6], most[7]));
  const I32x8 is_not_zero = a >= Splat<8>(kTiny);
  const F32x8 d = ZeroUnless(is_not_zero, a * Splat<8>(kOneOver127));
  Store(d, chunk->d);
  // d is 0 or a normal number far from the ends of the range, so IEEE division rounds its
  // reciprocal correctly. With a factor of 0 every q is 0.
  float inverse[8];
  Store(ZeroUnless(is_not_zero, RecipInDomain(d)), inverse);
  for (int b = 0; b < blocks; ++b) {
    for (int half = 0; half < 2; ++half) {
      const int at = 32 * b + 16 * half;
      lanes.half_sum[half][b] = QuantizeHalf(x + at, Splat<16>(inverse[b]), chunk->q + at);
    }
  }
  const I32x8 first = JoinSumsOf(lanes.half_sum[0]), last = JoinSumsOf(lanes.half_sum[1]);
  Store(first, chunk->half_sum[0]);
  Store(last, chunk->half_sum[1]);
  Store(first + last, chunk->sum);
}

// Stores chunk `index` of a row, the `column`th of its group, into the group's records.
void StoreToRecords(const ActivationChunk& chunk, int64_t index, int64_t column,
                    const GroupOfRecords<ActivationRecord, ActivationSums>& group,
                    const RecordOrder& order, int64_t count) {
  for (int j = 0; j < quant::kSuperGroups; ++j) {
    if (index * quant::kSuperGroups + j >= count) break;
    ActivationRecord& record = group.records[order.first[j] + index];
    ActivationSums& sums = group.sums[order.first[j] + index];
    __builtin_memcpy(record.q[column], chunk.q + quant::kGroupValues * j, quant::kGroupValues);
    record.d[column] = chunk.d[j];
    sums.sum[column] = static_cast<float>(chunk.sum[j]);
    for (int h = 0; h < 2; ++h) {
      sums.half_sum[h][column] = static_cast<float>(chunk.half_sum[h][j]);
    }
  }
}

// Quantises chunk c of row `row` of `rows` into records.
void QuantizeToRecords(const View& x, int64_t row, int64_t rows, int64_t c,
                       const RecordOrder& order, ActivationChunk* chunks) {
  const int64_t k = x.dims[0], count = RecordCount(k);
  ActivationChunk chunk;
  QuantizeChunk(F32Row(x, row) + c * quant::kSuperValues,
                k / quant::kGroupValues - c * quant::kSuperGroups, &chunk);
  const auto group = RecordsOfGroup(chunks, row / kInterleavedRows, k);
  int64_t column = row % kInterleavedRows;
  StoreToRecords(chunk, c, column, group, order, count);
  // Columns without a row are computed too. They get zeros, because denormals would take long.
  while (row + 1 == rows && ++column < kInterleavedRows) {
    StoreToRecords({}, c, column, group, order, count);
  }
}

// Quantises some chunks of rows into records. If all 16 rows that share records are wanted, goes
// through them chunk by chunk: then the records of a chunk stay in a first-level cache.
void QuantizeAllToRecords(const View& x, int64_t rows, ActivationChunk* chunks, Range range) {
  const RecordOrder order = OrderOfRecords(RecordCount(x.dims[0]));
  const int64_t row_chunks = ActivationChunks(x.dims[0]);
  const int64_t group_chunks = kInterleavedRows * row_chunks;
  for (int64_t i = range.begin; i < range.end;) {
    const int64_t row = i / row_chunks;
    if (i % group_chunks != 0 || i + group_chunks > range.end) {
      QuantizeToRecords(x, row, rows, i % row_chunks, order, chunks);
      ++i;
      continue;
    }
    for (int64_t c = 0; c < row_chunks; ++c) {
      for (int64_t r = row; r < row + kInterleavedRows; ++r) {
        QuantizeToRecords(x, r, rows, c, order, chunks);
      }
    }
    i += group_chunks;
  }
}

}  // namespace

void QuantizeActivations(const View& x, ActivationReader reader, ActivationChunk* chunks,
                         Range range) {
  const int64_t k = x.dims[0], blocks = k / quant::kGroupValues;
  const int64_t row_chunks = ActivationChunks(k);
  const int64_t rows = x.dims[1] * x.dims[2] * x.dims[3], step = ActivationStep(rows);
  if (TRINE_HAS_AMX && reader == ActivationReader::kMatmul && rows >= kInterleavedRows) {
    return QuantizeAllToRecords(x, rows, chunks, range);
  }
  const bool in_pairs = reader == ActivationReader::kMatmul && LieInPairs(rows);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t row = i / row_chunks, c = i % row_chunks;
    const float* values = F32Row(x, row) + c * quant::kSuperValues;
    const int64_t left = blocks - c * quant::kSuperGroups;
    const auto place = [&](int64_t r) { return chunks + FirstChunkOf(r, rows, k) + c * step; };
    if (in_pairs && (row | 1) < rows) {
      // Touches no byte of its partner, which may be quantised at the same time.
      ActivationChunk chunk;
      QuantizeChunk(values, left, &chunk);
      __builtin_memcpy(place(row), &chunk, offsetof(ActivationChunk, q));
      StoreToPair(chunk.q, static_cast<int>(row & 1), place(row & ~int64_t{1})->q,
                  place(row | 1)->q);
    } else {
      QuantizeChunk(values, left, place(row));
    }
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
