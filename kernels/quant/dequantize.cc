#include "kernels/quant/dequantize.h"

#include <algorithm>

#include "kernels/quant/float_bits.h"
#include "kernels/quant/group.h"

namespace trine::quant {
namespace {

void DecodeGroup(Type type, const void* row, int64_t index, int count, float* out) {
  Group group;
  LoadGroup(type, row, index, &group);
  for (int i = 0; i < count; ++i) {
    const int h = i / 16;
    const float scaled = group.d * static_cast<float>(group.scale[h]);
    const float minimum = group.dmin * static_cast<float>(group.min[h]);
    out[i] = scaled * static_cast<float>(group.q[i]) - minimum;
  }
}

}  // namespace

void DequantizeGroup(Type type, const void* row, int64_t group, int count, float* out) {
  const int64_t first = group * kGroupValues;
  switch (type) {
    case Type::kF32:
      std::copy_n(static_cast<const float*>(row) + first, count, out);
      return;
    case Type::kF16:
      std::transform(static_cast<const uint16_t*>(row) + first,
                     static_cast<const uint16_t*>(row) + first + count, out, F16ToF32);
      return;
    case Type::kBF16:
      std::transform(static_cast<const uint16_t*>(row) + first,
                     static_cast<const uint16_t*>(row) + first + count, out, Bf16ToF32);
      return;
    default:
      DecodeGroup(type, row, group, count, out);
  }
}

void DequantizeRow(Type type, const void* row, int64_t values, float* out) {
  for (int64_t first = 0; first < values; first += kGroupValues) {
    const int64_t count = std::min<int64_t>(kGroupValues, values - first);
    DequantizeGroup(type, row, first / kGroupValues, static_cast<int>(count), out + first);
  }
}

}  // namespace trine::quant
