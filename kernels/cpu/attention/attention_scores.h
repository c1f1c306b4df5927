// Computes the dot products of a block's queries with the keys of a chunk. Part of attention.cc.
//
// A key is read, converted and kept in registers, where it is multiplied with one query after the
// other. Queries come from the first-level cache, at one load per multiplication and addition. So a
// key is converted once, however many heads and tokens share it, and it needs no copy in memory.
//
// The 32 partial sums of a dot product are joined as soon as their terms are there, so none of them
// needs a register for long. A key that is too wide for the registers is taken in passes: pass s of
// n takes the vectors whose number mod n is s. The contract joins these with each other first.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention/attention_block.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using Native = F32<kNativeLanes>;
constexpr int kSumVectors = 32 / kNativeLanes;  // vectors that hold the 32 partial sums

// The number of a key's vectors in registers at a time: half of the registers, or a little less.
#if defined(__x86_64__) && !defined(__AVX512F__)
constexpr int kKeyVectors = 8;
#else
constexpr int kKeyVectors = 16;
#endif

// Returns the number of passes for a key of 32 * steps values. If it is above kSumVectors, the key
// is too wide.
constexpr int PassesOf(int steps) {
  int passes = 1;
  while (steps * kSumVectors > passes * kKeyVectors) passes *= 2;
  return passes;
}

// Returns the vectors of x whose number is kPass mod kPasses, as one.
template <int kPass, int kPasses, int N>
TRINE_INLINE F32<N / kPasses> Every(F32<N> x) {
  if constexpr (kPasses == 1) {
    return x;
  } else if constexpr (N == kPasses * kNativeLanes) {
    if constexpr (kPass < kPasses / 2) {
      return Every<kPass, kPasses / 2>(x.lo);
    } else {
      return Every<kPass - kPasses / 2, kPasses / 2>(x.hi);
    }
  } else {
    return {Every<kPass, kPasses>(x.lo), Every<kPass, kPasses>(x.hi)};
  }
}

// A key's values, or the values of one pass. Nested, because GCC keeps an array of them in memory.
template <typename Values, int kSteps>
struct Key {
  Values first;
  Key<Values, kSteps - 1> rest;
};
template <typename Values>
struct Key<Values, 1> {
  Values first;
};

template <typename Row, int kPass, int kPasses, int kSteps, typename Values>
TRINE_INLINE void ReadKey(const std::byte* row, int64_t at, Key<Values, kSteps>* key) {
  key->first = Every<kPass, kPasses>(Row::template Read<32>(row, at));
  if constexpr (kSteps > 1) ReadKey<Row, kPass, kPasses>(row, at + 32, &key->rest);
}

template <int kPass, int kPasses, int kSteps, typename Values>
TRINE_INLINE Values AddProducts(Values sums, const float* q, const Key<Values, kSteps>& key) {
  sums += Every<kPass, kPasses>(Load<32>(q)) * key.first;
  if constexpr (kSteps > 1) sums = AddProducts<kPass, kPasses>(sums, q + 32, key.rest);
  return sums;
}

// Returns the sums of each class's products. Does not add the first product to +0, so a sum can be
// -0 where the contract has +0; no score shows that, because scores go through canon.
template <int kPass, int kPasses, int kSteps, typename Values>
TRINE_INLINE Values Products(const float* q, const Key<Values, kSteps>& key) {
  const Values sums = Every<kPass, kPasses>(Load<32>(q)) * key.first;
  if constexpr (kSteps == 1) {
    return sums;
  } else {
    return AddProducts<kPass, kPasses>(sums, q + 32, key.rest);
  }
}

// Adds halves, as the contract joins partial sums, until one vector is left.
template <int N>
TRINE_INLINE Native JoinToNative(F32<N> s) {
  if constexpr (N > kNativeLanes) {
    return JoinToNative(s.lo + s.hi);
  } else {
    return s;
  }
}

// Computes one pass of one key: its partial sums for every query. The last pass joins the sums of
// all passes and leaves four of each query in dots[][4 * at ..].
template <typename Row, int kSteps, int kPass>
TRINE_INLINE void DotPass(const std::byte* row, int at, Block* block) {
  constexpr int kPasses = PassesOf(kSteps);
  Key<F32<32 / kPasses>, kSteps> key;
  ReadKey<Row, kPass, kPasses>(row, 0, &key);
  const float* q = block->q;
  const int count = block->count;
  for (int i = 0; i < count; ++i, q += 32 * kSteps) {
    const Native sum = JoinToNative(Products<kPass, kPasses>(q, key));
    float* sums = block->sums[i];
    if constexpr (kPass + 1 < kPasses) {
      Store(sum, sums + kPass * kNativeLanes);
    } else if constexpr (kPasses == 1) {
      Store(JoinToFour(sum), block->dots[i] + 4 * at);
    } else {
      Store(sum, sums + kPass * kNativeLanes);
      const auto all = Load<kPasses * kNativeLanes>(static_cast<const float*>(sums));
      Store(JoinToFour(all), block->dots[i] + 4 * at);
    }
  }
}

template <typename Row, int kSteps, int kPass = 0>
TRINE_INLINE void DotKey(const std::byte* key, int at, Block* block) {
  DotPass<Row, kSteps, kPass>(key, at, block);
  if constexpr (kPass + 1 < PassesOf(kSteps)) DotKey<Row, kSteps, kPass + 1>(key, at, block);
}

// Multiplies a key of any width, as f32, with every query.
inline void DotWideKey(const float* key, int64_t width, int at, Block* block) {
  for (int i = 0; i < block->count; ++i) {
    const float* q = block->q + i * width;
    F32x32 sums = Splat<32>(0.0f);
    for (int64_t j = 0; j < width; j += 32) sums += Load<32>(q + j) * Load<32>(key + j);
    Store(JoinToFour(sums), block->dots[i] + 4 * at);
  }
}

// Sets p[i][t] to the dot product of query i and key t, for the keys of the part, widened to
// multiples of four. dot_key(t, at) puts four partial sums of each query into dots.
template <typename DotKeyAt>
TRINE_INLINE void DotAll(const Call& call, Range part, DotKeyAt dot_key, Block* block) {
  for (int64_t t = RoundDown(part.begin, 4); t < part.end; t += 4) {
    for (int at = 0; at < 4; ++at) {
      PrefetchAt(t + at, part, call, *block);
      dot_key(t + at, at);
    }
    for (int i = 0; i < block->count; ++i) {
      const float* dots = block->dots[i];
      Store(JoinSums(Load<4>(dots), Load<4>(dots + 4), Load<4>(dots + 8), Load<4>(dots + 12)),
            block->p[i] + t);
    }
  }
}

// Does what DotAll does, with four keys in registers at a time. Joins their partial sums together:
// joined one by one, shuffles take a third of the time. Only many queries gain: 16 queries a
// quarter.
constexpr int kFoursMinQueries = 9;
template <typename Row, int kSteps>
void DotFours(const Call& call, Range part, Block* block) {
  for (int64_t t = RoundDown(part.begin, 4); t < part.end; t += 4) {
    for (int at = 0; at < 4; ++at) PrefetchAt(t + at, part, call, *block);
    Key<F32x32, kSteps> a, b, c, d;
    ReadKey<Row, 0, 1>(block->k_rows[t], 0, &a);
    ReadKey<Row, 0, 1>(block->k_rows[t + 1], 0, &b);
    ReadKey<Row, 0, 1>(block->k_rows[t + 2], 0, &c);
    ReadKey<Row, 0, 1>(block->k_rows[t + 3], 0, &d);
    const float* q = block->q;
    for (int i = 0; i < block->count; ++i, q += 32 * kSteps) {
      const auto sums = [&](const auto& key) { return JoinToNative(Products<0, 1>(q, key)); };
      Store(JoinSums(sums(a), sums(b), sums(c), sums(d)), block->p[i] + t);
    }
  }
}

template <typename Row, int kSteps>
void DotInPlace(const Call& call, Range part, Block* block) {
  if constexpr (4 * kSteps * kSumVectors <= kKeyVectors) {
    if (block->count >= kFoursMinQueries) return DotFours<Row, kSteps>(call, part, block);
  }
  DotAll(
      call, part, [&](int64_t t, int at) { DotKey<Row, kSteps>(block->k_rows[t], at, block); },
      block);
}

// Does what DotAll does for keys whose width has no kernel: first copies each, with zeros after it.
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
