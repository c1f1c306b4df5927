#include "kernels/quant/validate.h"

#include <type_traits>

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
  if constexpr (std::is_same_v<Block, BlockMXFP4>) {
    return block.e != 255;
  } else if constexpr (std::is_same_v<Block, BlockQ8_KV>) {
    return F32IsFinite(block.d);
  } else {
    bool finite = F16IsFinite(block.d);
    if constexpr (requires { block.m; }) finite &= F16IsFinite(block.m);
    if constexpr (requires { block.dmin; }) finite &= F16IsFinite(block.dmin);
    return finite;
  }
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
    default:
      break;
  }
  int64_t bad = 0;
  WithBlocks(type, [&](auto blocks) {
    bad = FirstBadBlock<typename decltype(blocks)::Block>(type, row, values);
  });
  return bad;
}

void CanonRow(Type type, void* row, int64_t values) {
  if (type == Type::kF32) {
    float* x = static_cast<float*>(row);
    for (int64_t i = 0; i < values; ++i) x[i] = Canon(x[i]);
  } else if (type == Type::kBF16) {
    // The bounds are powers of two, so a canonical bf16 is exactly a bf16.
    uint16_t* x = static_cast<uint16_t*>(row);
    for (int64_t i = 0; i < values; ++i) x[i] = F32ToBf16(Canon(Bf16ToF32(x[i])));
  }
}

}  // namespace trine::quant
