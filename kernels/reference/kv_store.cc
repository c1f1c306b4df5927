#include "kernels/quant/activation.h"
#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

using quant::Type;

// f16 has its own floor of 2^-24; the other types are given one (see kKvTiny).
float AboveFloor(float x) { return Abs(x) < quant::kKvTiny ? 0.0f : x; }

void StoreRow(Type type, const float* x, int64_t n, std::byte* to) {
  switch (type) {
    case Type::kF16:
      for (int64_t i = 0; i < n; ++i) {
        reinterpret_cast<uint16_t*>(to)[i] = F32ToF16Saturated(x[i]);
      }
      return;
    case Type::kBF16:
      for (int64_t i = 0; i < n; ++i) {
        reinterpret_cast<uint16_t*>(to)[i] = F32ToBf16(AboveFloor(x[i]));
      }
      return;
    case Type::kQ8_KV:
      for (int64_t i = 0; i < n; i += quant::kGroupValues) {
        quant::QuantizeKv(x + i, reinterpret_cast<quant::BlockQ8_KV*>(to) + i / 32);
      }
      return;
    default:
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<float*>(to)[i] = AboveFloor(x[i]);
  }
}

}  // namespace

void KvStore(const View& src, const View& slots, const View& cache, Range rows) {
  const int64_t block_positions = cache.dims[1];
  const int64_t n_slots = block_positions * cache.dims[3];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const RowIndex index = IndexOfRow(src, r);
    const int64_t slot = I32Row(slots, 0)[index.i2];
    if (slot < 0 || slot >= n_slots) continue;
    std::byte* to = RowAt(cache, slot % block_positions, index.i1, slot / block_positions);
    StoreRow(cache.type, F32Row(src, r), src.dims[0], to);
  }
}

}  // namespace trine::reference
