#include "kernels/quant/validate.h"

#include "kernels/quant/scalar.h"

namespace trine::quant {
namespace {

bool F32IsFinite(float x) { return (Bits(x) & 0x7f800000u) != 0x7f800000u; }
bool F16IsFinite(uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }
bool Bf16IsFinite(uint16_t half) { return (half & 0x7f80u) != 0x7f80u; }

template <typename T, typename IsFinite>
int64_t FirstBad(const void* row, int64_t count, IsFinite is_finite) {
  const T* elements = static_cast<const T*>(row);
  for (int64_t i = 0; i < count; ++i) {
    if (!is_finite(elements[i])) return i;
  }
  return -1;
}

template <typename Block>
bool ScaleIsFinite(const Block& block) {
  return F16IsFinite(block.d);
}
template <>
bool ScaleIsFinite(const BlockQ8_KV& block) {
  return F32IsFinite(block.d);
}
template <>
bool ScaleIsFinite(const BlockMXFP4& block) {
  return block.e != 255;
}
template <>
bool ScaleIsFinite(const BlockQ4_1& block) {
  return F16IsFinite(block.d) && F16IsFinite(block.m);
}
template <>
bool ScaleIsFinite(const BlockQ5_1& block) {
  return F16IsFinite(block.d) && F16IsFinite(block.m);
}
template <>
bool ScaleIsFinite(const BlockQ2_K& block) {
  return F16IsFinite(block.d) && F16IsFinite(block.dmin);
}
template <>
bool ScaleIsFinite(const BlockQ4_K& block) {
  return F16IsFinite(block.d) && F16IsFinite(block.dmin);
}
template <>
bool ScaleIsFinite(const BlockQ5_K& block) {
  return F16IsFinite(block.d) && F16IsFinite(block.dmin);
}

template <typename Block>
int64_t FirstBadBlock(Type type, const void* row, int64_t values) {
  const int64_t block_values = Traits(type).block_values;
  const int64_t bad = FirstBad<Block>(row, values / block_values, ScaleIsFinite<Block>);
  return bad < 0 ? bad : bad * block_values;
}

}  // namespace

int64_t FirstNonFinite(Type type, const void* row, int64_t values) {
  switch (type) {
    case Type::kF32:
      return FirstBad<float>(row, values, F32IsFinite);
    case Type::kF16:
      return FirstBad<uint16_t>(row, values, F16IsFinite);
    case Type::kBF16:
      return FirstBad<uint16_t>(row, values, Bf16IsFinite);
    case Type::kI32:
      return -1;
    case Type::kQ4_0:
      return FirstBadBlock<BlockQ4_0>(type, row, values);
    case Type::kQ4_1:
      return FirstBadBlock<BlockQ4_1>(type, row, values);
    case Type::kQ5_0:
      return FirstBadBlock<BlockQ5_0>(type, row, values);
    case Type::kQ5_1:
      return FirstBadBlock<BlockQ5_1>(type, row, values);
    case Type::kQ8_0:
      return FirstBadBlock<BlockQ8_0>(type, row, values);
    case Type::kQ8_KV:
      return FirstBadBlock<BlockQ8_KV>(type, row, values);
    case Type::kQ2_K:
      return FirstBadBlock<BlockQ2_K>(type, row, values);
    case Type::kQ3_K:
      return FirstBadBlock<BlockQ3_K>(type, row, values);
    case Type::kQ4_K:
      return FirstBadBlock<BlockQ4_K>(type, row, values);
    case Type::kQ5_K:
      return FirstBadBlock<BlockQ5_K>(type, row, values);
    case Type::kQ6_K:
      return FirstBadBlock<BlockQ6_K>(type, row, values);
    case Type::kIQ4_NL:
      return FirstBadBlock<BlockIQ4_NL>(type, row, values);
    case Type::kIQ4_XS:
      return FirstBadBlock<BlockIQ4_XS>(type, row, values);
    case Type::kTQ1_0:
      return FirstBadBlock<BlockTQ1_0>(type, row, values);
    case Type::kTQ2_0:
      return FirstBadBlock<BlockTQ2_0>(type, row, values);
    case Type::kMXFP4:
      return FirstBadBlock<BlockMXFP4>(type, row, values);
  }
  return 0;
}

void CanonRow(Type type, void* row, int64_t values) {
  if (type == Type::kF32) {
    float* x = static_cast<float*>(row);
    for (int64_t i = 0; i < values; ++i) x[i] = Canon(x[i]);
  } else if (type == Type::kBF16) {
    // The bounds are powers of two, so a canon'd bf16 is a bf16.
    uint16_t* x = static_cast<uint16_t*>(row);
    for (int64_t i = 0; i < values; ++i) x[i] = F32ToBf16(Canon(Bf16ToF32(x[i])));
  }
}

}  // namespace trine::quant
