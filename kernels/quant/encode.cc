#include "kernels/quant/encode.h"

#include <algorithm>

#include "kernels/quant/encode_blocks.h"
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

// A value that bf16 would round to infinity becomes the largest bf16.
uint16_t F32ToBf16Saturated(float x) {
  const uint16_t half = F32ToBf16(x);
  return (half & 0x7fffu) == 0x7f80u ? static_cast<uint16_t>(half - 1) : half;
}

bool IsWeight(const float* importance, int64_t values) {
  if (importance == nullptr) return true;
  for (int64_t i = 0; i < values; ++i) {
    if (importance[i] < 0.0f) return false;
  }
  return RowIsFinite(Type::kF32, importance, values);
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
    case Type::kQ4_0:
      EncodeBlocks<BlockQ4_0>(type, x, values, importance, out);
      break;
    case Type::kQ4_1:
      EncodeBlocks<BlockQ4_1>(type, x, values, importance, out);
      break;
    case Type::kQ5_0:
      EncodeBlocks<BlockQ5_0>(type, x, values, importance, out);
      break;
    case Type::kQ5_1:
      EncodeBlocks<BlockQ5_1>(type, x, values, importance, out);
      break;
    case Type::kQ8_0:
      EncodeBlocks<BlockQ8_0>(type, x, values, importance, out);
      break;
    case Type::kQ2_K:
      EncodeBlocks<BlockQ2_K>(type, x, values, importance, out);
      break;
    case Type::kQ3_K:
      EncodeBlocks<BlockQ3_K>(type, x, values, importance, out);
      break;
    case Type::kQ4_K:
      EncodeBlocks<BlockQ4_K>(type, x, values, importance, out);
      break;
    case Type::kQ5_K:
      EncodeBlocks<BlockQ5_K>(type, x, values, importance, out);
      break;
    case Type::kQ6_K:
      EncodeBlocks<BlockQ6_K>(type, x, values, importance, out);
      break;
    case Type::kIQ4_NL:
      EncodeBlocks<BlockIQ4_NL>(type, x, values, importance, out);
      break;
    case Type::kIQ4_XS:
      EncodeBlocks<BlockIQ4_XS>(type, x, values, importance, out);
      break;
    case Type::kTQ1_0:
      EncodeBlocks<BlockTQ1_0>(type, x, values, importance, out);
      break;
    case Type::kTQ2_0:
      EncodeBlocks<BlockTQ2_0>(type, x, values, importance, out);
      break;
    case Type::kMXFP4:
      EncodeBlocks<BlockMXFP4>(type, x, values, importance, out);
      break;
    case Type::kI32:
    case Type::kQ8_KV:
      return false;
  }
  return true;
}

}  // namespace trine::quant
