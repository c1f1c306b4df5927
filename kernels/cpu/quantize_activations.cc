#include <cstdint>

#include "kernels/cpu/half.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr float kOneOver127 = 0x1.020408p-7f;  // 3C010204

// Blocks of 32 values; block `b` of its chunk. As quant::QuantizeActivation.
TRINE_INLINE void QuantizeBlock(const float* x, int b, ActivationChunk* chunk) {
  constexpr int kVectors = quant::kGroupValues / 8;
  F32x8 values[kVectors];
  F32x8 largest = Splat<8>(0.0f);
  for (int i = 0; i < kVectors; ++i) {
    values[i] = Load<8>(x + 8 * i);
    largest = Max(largest, Abs(values[i]));
  }
  const float a = MaxLane(largest);
  const bool is_zero = !(a >= kTiny);
  const float d = is_zero ? 0.0f : a * kOneOver127;
  // d is 0 or a normal number far from the ends of its range, whose reciprocal IEEE division rounds
  // correctly; with a factor of 0 every q is 0.
  const F32x8 inverse = Splat<8>(is_zero ? 0.0f : 1.0f / d);
  I32x8 q[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    const F32x8 shifted = values[i] * inverse + Splat<8>(12582912.0f);
    const I32x8 rounded = BitCast<int32_t>(shifted) - Splat<8>(0x4b400000);
    q[i] = Max(Min(rounded, Splat<8>(127)), Splat<8>(-127));
    StoreNarrowed(q[i], chunk->q + quant::kGroupValues * b + 8 * i);
  }
  chunk->d[b] = d;
  chunk->half_sum[0][b] = JoinSums(q[0] + q[1]);
  chunk->half_sum[1][b] = JoinSums(q[2] + q[3]);
  chunk->sum[b] = chunk->half_sum[0][b] + chunk->half_sum[1][b];
}

// The first eight of `count` blocks; zeros where there are fewer.
void QuantizeChunk(const float* x, int64_t count, ActivationChunk* chunk) {
  if (count < quant::kSuperGroups) __builtin_memset(chunk, 0, sizeof(*chunk));
  for (int b = 0; b < quant::kSuperGroups && b < count; ++b) {
    QuantizeBlock(x + b * quant::kGroupValues, b, chunk);
  }
}

}  // namespace

void QuantizeActivations(const View& x, ActivationChunk* chunks, Range range) {
  const int64_t blocks = x.dims[0] / quant::kGroupValues;
  const int64_t row_chunks = ActivationChunks(x.dims[0]);
  const int64_t rows = x.dims[1] * x.dims[2] * x.dims[3], step = ActivationStep(rows);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t row = i / row_chunks, c = i % row_chunks;
    QuantizeChunk(FloatsAt(x, row) + c * quant::kSuperValues, blocks - c * quant::kSuperGroups,
                  chunks + FirstChunkOf(row, rows, x.dims[0]) + c * step);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
