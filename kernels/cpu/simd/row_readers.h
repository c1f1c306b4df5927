// Reads rows of weights or of a KV cache as f32: in place, a vector at a time, or into a copy.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/half.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Read<N>(row, i) returns values [i, i + N); i is a multiple of N.
template <quant::Type kType>
struct RowReader;

template <>
struct RowReader<quant::Type::kF32> {
  using Element = float;
  template <int N>
  TRINE_INLINE F32<N> Read(const std::byte* row, int64_t i) {
    return Load<N>(reinterpret_cast<const float*>(row) + i);
  }
};

template <>
struct RowReader<quant::Type::kF16> {
  using Element = uint16_t;
  template <int N>
  TRINE_INLINE F32<N> Read(const std::byte* row, int64_t i) {
    return LoadF16<N>(reinterpret_cast<const uint16_t*>(row) + i);
  }
};

template <>
struct RowReader<quant::Type::kBF16> {
  using Element = uint16_t;
  template <int N>
  TRINE_INLINE F32<N> Read(const std::byte* row, int64_t i) {
    return LoadBf16<N>(reinterpret_cast<const uint16_t*>(row) + i);
  }
};

template <>
struct RowReader<quant::Type::kQ8_KV> {
  using Element = quant::BlockQ8_KV;
  template <int N>
  TRINE_INLINE F32<N> Read(const std::byte* row, int64_t i) {
    static_assert(quant::kGroupValues % N == 0);  // a vector has one scale
    const Element& block = reinterpret_cast<const Element*>(row)[i / quant::kGroupValues];
    return Splat<N>(block.d) * LoadI8<N>(block.q + i % quant::kGroupValues);
  }
};

using RowF32 = RowReader<quant::Type::kF32>;
using RowF16 = RowReader<quant::Type::kF16>;
using RowBF16 = RowReader<quant::Type::kBF16>;
using RowQ8Kv = RowReader<quant::Type::kQ8_KV>;

// Reads N elements of f32, f16 or bf16.
template <quant::Type kType, int N>
TRINE_INLINE F32<N> ReadElements(const typename RowReader<kType>::Element* from) {
  return RowReader<kType>::template Read<N>(reinterpret_cast<const std::byte*>(from), 0);
}

// Copies values [first, first + count) of a row, then writes zeros up to a multiple of N.
template <int N, typename Row>
TRINE_INLINE void CopyRow(Row, const std::byte* row, int64_t first, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + N <= count; i += N) Store(Row::template Read<N>(row, first + i), to + i);
  if constexpr (sizeof(typename Row::Element) <= sizeof(float)) {  // a row of blocks has no tail
    if (i == count) return;
    using Element = typename Row::Element;
    Element tail[N] = {};
    const Element* from = reinterpret_cast<const Element*>(row) + first;
    for (int64_t j = i; j < count; ++j) tail[j - i] = from[j];
    Store(Row::template Read<N>(reinterpret_cast<const std::byte*>(tail), 0), to + i);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
