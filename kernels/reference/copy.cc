#include <algorithm>
#include <cstring>

#include "kernels/quant/activation.h"
#include "kernels/quant/dequantize.h"
#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

using quant::Type;

float LoadValue(Type type, const std::byte* row, int64_t i) {
  switch (type) {
    case Type::kF16:
      return F16ToF32(reinterpret_cast<const uint16_t*>(row)[i]);
    case Type::kBF16:
      return Bf16ToF32(reinterpret_cast<const uint16_t*>(row)[i]);
    default:
      return reinterpret_cast<const float*>(row)[i];
  }
}

// Stores a value. bf16 needs no canon: canon's bounds are powers of two and rounding is monotonic,
// so a canonical f32 stays canonical.
void StoreValue(Type type, float value, std::byte* row, int64_t i) {
  switch (type) {
    case Type::kF16:
      reinterpret_cast<uint16_t*>(row)[i] = F32ToF16Saturated(value);
      return;
    case Type::kBF16:
      reinterpret_cast<uint16_t*>(row)[i] = F32ToBf16(value);
      return;
    default:
      reinterpret_cast<float*>(row)[i] = Canon(value);
  }
}

// Returns x, or 0 if its magnitude is below kKvTiny. Not for f16, which has its own floor of 2^-24.
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

void Copy(const View& src, const View& dst, Range rows) {
  uint64_t row_bytes = 0;
  const bool same_type = src.type == dst.type && quant::RowBytes(src.type, src.dims[0], &row_bytes);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const std::byte* from = RowAt(src, r);
    std::byte* to = RowAt(dst, r);
    if (same_type) {
      std::memmove(to, from, row_bytes);
      continue;
    }
    for (int64_t i = 0; i < src.dims[0]; ++i) {
      StoreValue(dst.type, LoadValue(src.type, from, i), to, i);
    }
  }
}

void GatherRows(const View& table, const View& ids, const View& dst, Range rows) {
  const int64_t k = table.dims[0];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int32_t id = I32Row(ids, 0)[r];
    float* y = F32Row(dst, r);
    if (id < 0 || id >= table.dims[1]) {
      std::fill_n(y, k, 0.0f);
      continue;
    }
    quant::DequantizeRow(table.type, RowAt(table, id), k, y);
    for (int64_t i = 0; i < k; ++i) y[i] = Canon(y[i]);
  }
}

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
