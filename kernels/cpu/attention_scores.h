// The dot products of a block's queries with the keys of a chunk. Part of attention.cc.
//
// A key is read, converted and kept in registers, and meets one query after the other: queries come
// from the first-level cache, at one load per multiplication and addition. So a key is converted
// once, however many heads and tokens share it, and it needs no copy in memory.
//
// The 32 partial sums of a dot product are joined as soon as their terms are there, so that none of
// them need a register for long. Where a key is too wide for the registers it is taken in passes:
// pass s of n has the vectors whose number is s mod n, which are joined among each other first.

#ifndef TRINE_KERNELS_CPU_ATTENTION_SCORES_H_
#define TRINE_KERNELS_CPU_ATTENTION_SCORES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention_block.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using Native = F32<kNativeLanes>;
constexpr int kSumVectors = 32 / kNativeLanes;  // that hold the 32 partial sums

// How many vectors of a key are in registers at a time: half of them, or a little less.
#if defined(__x86_64__) && !defined(__AVX512F__)
constexpr int kKeyVectors = 8;
#else
constexpr int kKeyVectors = 16;
#endif

// The passes that a key of 32 * steps values takes; more than kSumVectors: it is too wide.
constexpr int PassesOf(int steps) {
  int passes = 1;
  while (steps * kSumVectors > passes * kKeyVectors) passes *= 2;
  return passes;
}

// Native vector i of a wider one.
template <int i, int N>
TRINE_INLINE Native Piece(F32<N> x) {
  if constexpr (N == kNativeLanes) {
    return x;
  } else if constexpr (i < N / kNativeLanes / 2) {
    return Piece<i>(x.lo);
  } else {
    return Piece<i - N / kNativeLanes / 2>(x.hi);
  }
}

// out[i] = vector kFirst + i * kStride of 32 values.
template <int kFirst, int kStride, int kCount>
TRINE_INLINE void Pieces(F32x32 x, Native* out) {
  if constexpr (kCount > 0) {
    out[0] = Piece<kFirst>(x);
    Pieces<kFirst + kStride, kStride, kCount - 1>(x, out + 1);
  }
}

// s[0] of the contract's joining: for n = kCount/2 .. 1: s[j] += s[j + n].
template <int kCount>
TRINE_INLINE Native JoinVectors(Native (&s)[kCount]) {
#pragma GCC unroll 8
  for (int n = kCount / 2; n > 0; n /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < n; ++j) s[j] += s[j + n];
  }
  return s[0];
}

// One pass of one key: the partial sums it has of every query. The last pass joins those of all and
// leaves four of each query in dots[][4 * at ..].
template <typename Row, int kSteps, int kPass>
TRINE_INLINE void DotPass(const std::byte* key, int at, Block* block) {
  constexpr int kPasses = PassesOf(kSteps), kCount = kSumVectors / kPasses;
  Native k[kSteps][kCount];
#pragma GCC unroll 16
  for (int step = 0; step < kSteps; ++step) {
    Pieces<kPass, kPasses, kCount>(Row::template Read<32>(key, 32 * step), k[step]);
  }
  const float* q = block->q + kPass * kNativeLanes;
  for (int i = 0; i < block->count; ++i, q += 32 * kSteps) {
    // The first terms stand for their sums with +0. That can make a -0 of a +0, which no score
    // shows: it goes through canon.
    Native s[kCount];
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) {
      const float* from = q + j * kPasses * kNativeLanes;
      s[j] = Load<kNativeLanes>(from) * k[0][j];
#pragma GCC unroll 16
      for (int step = 1; step < kSteps; ++step) {
        s[j] += Load<kNativeLanes>(from + 32 * step) * k[step][j];
      }
    }
    const Native sum = JoinVectors(s);
    if constexpr (kPass + 1 < kPasses) {
      Store(sum, block->sums[i] + kPass * kNativeLanes);
    } else {
      Native passes[kPasses];
#pragma GCC unroll 8
      for (int j = 0; j + 1 < kPasses; ++j) {
        passes[j] = Load<kNativeLanes>(block->sums[i] + j * kNativeLanes);
      }
      passes[kPasses - 1] = sum;
      Store(JoinToFour(JoinVectors(passes)), block->dots[i] + 4 * at);
    }
  }
}

template <typename Row, int kSteps, int kPass = 0>
TRINE_INLINE void DotKey(const std::byte* key, int at, Block* block) {
  DotPass<Row, kSteps, kPass>(key, at, block);
  if constexpr (kPass + 1 < PassesOf(kSteps)) DotKey<Row, kSteps, kPass + 1>(key, at, block);
}

// A key of any width, as f32.
inline void DotWideKey(const float* key, int64_t width, int at, Block* block) {
  for (int i = 0; i < block->count; ++i) {
    const float* q = block->q + i * width;
    F32x32 sums = Splat<32>(0.0f);
    for (int64_t j = 0; j < width; j += 32) sums += Load<32>(q + j) * Load<32>(key + j);
    Store(JoinToFour(sums), block->dots[i] + 4 * at);
  }
}

// p[i][t] = the dot product of query i and key t, for the keys of the part, widened to multiples of
// four. dot_key(t, at) puts four partial sums of each into dots.
template <typename DotKeyAt>
TRINE_INLINE void DotAll(const Call& call, Range part, DotKeyAt dot_key, Block* block) {
  for (int64_t t = RoundDown(part.begin, 4); t < part.end; t += 4) {
    for (int at = 0; at < 4; ++at) {
      block->PrefetchAt(t + at, part, call);
      dot_key(t + at, at);
    }
    for (int i = 0; i < block->count; ++i) {
      const float* dots = block->dots[i];
      Store(JoinSums(Load<4>(dots), Load<4>(dots + 4), Load<4>(dots + 8), Load<4>(dots + 12)),
            block->p[i] + t);
    }
  }
}

template <typename Row, int kSteps>
void DotInPlace(const Call& call, Range part, Block* block) {
  DotAll(
      call, part,
      [&](int64_t t, int at) { DotKey<Row, kSteps>(block->k_rows[t], at, block); }, block);
}

// Keys of a width that has no kernel of its own are copied first, with zeros behind them.
template <typename Row>
void DotByCopy(Row row, const Call& call, Range part, Block* block) {
  const auto copy_of = [&](int64_t t) {
    CopyRow<32>(row, block->k_rows[t], 0, call.in.k.dims[0], block->tile);
    return reinterpret_cast<const std::byte*>(block->tile);
  };
  switch (call.k_width / 32) {
    case 1:
      return DotAll(
          call, part, [&](int64_t t, int at) { DotKey<RowF32, 1>(copy_of(t), at, block); }, block);
    case 3:
      return DotAll(
          call, part, [&](int64_t t, int at) { DotKey<RowF32, 3>(copy_of(t), at, block); }, block);
    case 4:
      return DotAll(
          call, part, [&](int64_t t, int at) { DotKey<RowF32, 4>(copy_of(t), at, block); }, block);
    default:
      return DotAll(
          call, part,
          [&](int64_t t, int at) {
            copy_of(t);
            DotWideKey(block->tile, call.k_width, at, block);
          },
          block);
  }
}

template <typename Row>
TRINE_INLINE void Dots(Row row, const Call& call, Range part, Block* block) {
  switch (call.in.k.dims[0]) {
    case 64:
      return DotInPlace<Row, 2>(call, part, block);
    case 128:
      return DotInPlace<Row, 4>(call, part, block);
    case 256:
      if constexpr (PassesOf(8) <= kSumVectors) return DotInPlace<Row, 8>(call, part, block);
      [[fallthrough]];
    default:
      return DotByCopy(row, call, part, block);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_ATTENTION_SCORES_H_
