#include "kernels/quant/encode.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/quant/float_bits.h"
#include "kernels/quant/validate.h"

namespace trine::quant {
namespace {

template <class Block>
void EncodeBlocks(Type type, const float* x, int64_t values, const float* importance, void* out) {
  const int64_t block_values = Traits(type).block_values;
  auto* blocks = static_cast<Block*>(out);
  for (int64_t at = 0; at < values; at += block_values) {
    EncodeBlock(x + at, importance != nullptr ? importance + at : nullptr, blocks++);
  }
}

// Returns the largest bf16 for a value that would round to infinity.
uint16_t F32ToBf16Saturated(float x) {
  const uint16_t half = F32ToBf16(x);
  return (half & 0x7fffu) == 0x7f80u ? static_cast<uint16_t>(half - 1) : half;
}

bool IsWeight(const float* importance, int64_t values) {
  if (importance == nullptr) return true;
  return RowIsFinite(Type::kF32, importance, values) &&
         std::none_of(importance, importance + values, [](float i) { return i < 0.0f; });
}

}  // namespace

bool CanEncode(Type type) {
  return Traits(type).block_bytes != 0 && type != Type::kI32 && type != Type::kQ8_KV;
}

bool EncodeRow(Type type, const float* x, int64_t values, const float* importance, void* out) {
  uint64_t bytes = 0;
  if (!CanEncode(type) || !RowBytes(type, values, &bytes)) return false;
  if (!RowIsFinite(Type::kF32, x, values) || !IsWeight(importance, values)) return false;
  switch (type) {
    case Type::kF32:
      std::copy_n(x, values, static_cast<float*>(out));
      break;
    case Type::kF16:
      std::transform(x, x + values, static_cast<uint16_t*>(out), F32ToF16Saturated);
      break;
    case Type::kBF16:
      std::transform(x, x + values, static_cast<uint16_t*>(out), F32ToBf16Saturated);
      break;
    default:
      return WithBlocks(type, [&](auto blocks) {
        using Block = typename decltype(blocks)::Block;
        if constexpr (!std::is_same_v<Block, BlockQ8_KV>) {
          EncodeBlocks<Block>(type, x, values, importance, out);
        }
      });
  }
  return true;
}

}  // namespace trine::quant
