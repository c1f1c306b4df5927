#include <cstring>

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

// A canonical f32 stays canonical as bf16: the bounds are powers of two, and rounding is monotonic.
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

}  // namespace trine::reference
