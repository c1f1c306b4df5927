#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/simd/half.h"
#include "kernels/cpu/simd/row_readers.h"
#include "kernels/cpu/simd/vec_math.h"
#include "kernels/quant/activation.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using quant::Type;
using Value = F32<kLanes>;

template <Type kType>
TRINE_INLINE void Write(Value x, typename RowReader<kType>::Element* to) {
  if constexpr (kType == Type::kF32) {
    Store(Canon(x), to);
  } else if constexpr (kType == Type::kF16) {
    StoreF16Saturated(x, to);
  } else {
    StoreBf16(x, to);
  }
}

template <Type kFrom, Type kTo>
void ConvertRows(const View& src, const View& dst, Range rows) {
  using In = typename RowReader<kFrom>::Element;
  using Out = typename RowReader<kTo>::Element;
  const int64_t n = src.dims[0];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const In* from = reinterpret_cast<const In*>(RowAt(src, r));
    Out* to = reinterpret_cast<Out*>(RowAt(dst, r));
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) Write<kTo>(ReadElements<kFrom, kLanes>(from + i), to + i);
    if (i == n) continue;
    In in[kLanes] = {};
    Out out[kLanes];
    for (int64_t j = i; j < n; ++j) in[j - i] = from[j];
    Write<kTo>(ReadElements<kFrom, kLanes>(in), out);
    for (int64_t j = i; j < n; ++j) to[j] = out[j - i];
  }
}

// Returns x, or 0 if its magnitude is below quant::kKvTiny. Not for f16, which has its own floor of
// 2^-24.
TRINE_INLINE Value AboveFloor(Value x) {
  return ZeroUnless(Abs(x) >= Splat<kLanes>(quant::kKvTiny), x);
}

// Calls store(vector, place) for each vector of the row; the tail goes through a buffer.
template <typename T, typename StoreFunction>
TRINE_INLINE void StoreValues(const float* x, int64_t n, std::byte* to, StoreFunction store) {
  T* out = reinterpret_cast<T*>(to);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(Load<kLanes>(x + i), out + i);
  if (i == n) return;
  T tail[kLanes];
  store(LoadPartial<kLanes>(x + i, n - i), tail);
  for (int64_t j = i; j < n; ++j) out[j] = tail[j - i];
}

// Equals quant::QuantizeKv. The scale lies in [2^-37, 2^44], where recip needs no test.
void QuantizeBlock(const float* x, quant::BlockQ8_KV* block) {
  const F32x32 values = Load<32>(x);
  const float largest = MaxLane(Abs(values));
  if (largest < quant::kKvTiny) {
    *block = {};
    return;
  }
  block->d = largest * 0x1.020408p-7f;  // 1/127, rounded
  const F32x32 scaled = values * RecipInDomain(Splat<32>(block->d));
  const U32<32> shifted = BitCast<uint32_t>(scaled + Splat<32>(12582912.0f));
  const I32<32> rounded = BitCast<int32_t>(shifted - Splat<32>(0x4b400000u));
  int32_t q[32];
  Store(Max(Min(rounded, Splat<32>(127)), Splat<32>(-127)), q);
  for (int i = 0; i < 32; ++i) block->q[i] = static_cast<int8_t>(q[i]);
}

void StoreRow(Type type, const float* x, int64_t n, std::byte* to) {
  switch (type) {
    case Type::kF16:
      return StoreValues<uint16_t>(x, n, to,
                                   [](Value v, uint16_t* at) { StoreF16Saturated(v, at); });
    case Type::kBF16:
      return StoreValues<uint16_t>(x, n, to,
                                   [](Value v, uint16_t* at) { StoreBf16(AboveFloor(v), at); });
    case Type::kQ8_KV:
      for (int64_t i = 0; i < n; i += quant::kGroupValues) {
        QuantizeBlock(x + i, reinterpret_cast<quant::BlockQ8_KV*>(to) + i / quant::kGroupValues);
      }
      return;
    default:
      return StoreValues<float>(x, n, to, [](Value v, float* at) { Store(AboveFloor(v), at); });
  }
}

}  // namespace

void Copy(const View& src, const View& dst, Range rows) {
  const auto is = [&](Type from, Type to) { return src.type == from && dst.type == to; };
  if (is(Type::kF32, Type::kF16)) return ConvertRows<Type::kF32, Type::kF16>(src, dst, rows);
  if (is(Type::kF32, Type::kBF16)) return ConvertRows<Type::kF32, Type::kBF16>(src, dst, rows);
  if (is(Type::kF16, Type::kF32)) return ConvertRows<Type::kF16, Type::kF32>(src, dst, rows);
  if (is(Type::kF16, Type::kBF16)) return ConvertRows<Type::kF16, Type::kBF16>(src, dst, rows);
  if (is(Type::kBF16, Type::kF32)) return ConvertRows<Type::kBF16, Type::kF32>(src, dst, rows);
  if (is(Type::kBF16, Type::kF16)) return ConvertRows<Type::kBF16, Type::kF16>(src, dst, rows);
  reference::Copy(src, dst, rows);  // equal types: bytes move
}

void KvStore(const View& src, const View& slots, const View& cache, Range rows) {
  const int64_t block_positions = cache.dims[1];
  const int64_t n_slots = block_positions * cache.dims[3];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const reference::RowIndex at = IndexOfRow(src, r);
    const int64_t slot = I32Row(slots, 0)[at.i2];
    if (slot < 0 || slot >= n_slots) continue;
    std::byte* to = RowAt(cache, slot % block_positions, at.i1, slot / block_positions);
    StoreRow(cache.type, F32Row(src, r), src.dims[0], to);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
