#include "kernels/quant/block_types.h"

#include <bit>
#include <limits>

namespace trine::quant {

static_assert(std::endian::native == std::endian::little,
              "Blocks are read in place from little-endian files");

TypeTraits Traits(Type type) {
  switch (type) {
    case Type::kF32:
      return {"f32", 1, 4};
    case Type::kF16:
      return {"f16", 1, 2};
    case Type::kBF16:
      return {"bf16", 1, 2};
    case Type::kI32:
      return {"i32", 1, 4};
    case Type::kQ4_0:
      return {"q4_0", 32, sizeof(BlockQ4_0)};
    case Type::kQ4_1:
      return {"q4_1", 32, sizeof(BlockQ4_1)};
    case Type::kQ5_0:
      return {"q5_0", 32, sizeof(BlockQ5_0)};
    case Type::kQ5_1:
      return {"q5_1", 32, sizeof(BlockQ5_1)};
    case Type::kQ8_0:
      return {"q8_0", 32, sizeof(BlockQ8_0)};
    case Type::kQ8_KV:
      return {"q8_kv", 32, sizeof(BlockQ8_KV)};
    case Type::kQ2_K:
      return {"q2_k", kSuperValues, sizeof(BlockQ2_K)};
    case Type::kQ3_K:
      return {"q3_k", kSuperValues, sizeof(BlockQ3_K)};
    case Type::kQ4_K:
      return {"q4_k", kSuperValues, sizeof(BlockQ4_K)};
    case Type::kQ5_K:
      return {"q5_k", kSuperValues, sizeof(BlockQ5_K)};
    case Type::kQ6_K:
      return {"q6_k", kSuperValues, sizeof(BlockQ6_K)};
    case Type::kIQ4_NL:
      return {"iq4_nl", 32, sizeof(BlockIQ4_NL)};
    case Type::kIQ4_XS:
      return {"iq4_xs", kSuperValues, sizeof(BlockIQ4_XS)};
    case Type::kTQ1_0:
      return {"tq1_0", kSuperValues, sizeof(BlockTQ1_0)};
    case Type::kTQ2_0:
      return {"tq2_0", kSuperValues, sizeof(BlockTQ2_0)};
    case Type::kMXFP4:
      return {"mxfp4", 32, sizeof(BlockMXFP4)};
  }
  return {"unknown", 1, 0};
}

bool IsQuantized(Type type) { return Traits(type).block_values > 1; }

bool RowBytes(Type type, int64_t values, uint64_t* bytes) {
  const TypeTraits traits = Traits(type);
  if (traits.block_bytes == 0 || values < 0 || values % traits.block_values != 0) return false;
  const uint64_t blocks = static_cast<uint64_t>(values / traits.block_values);
  const uint64_t block_bytes = static_cast<uint64_t>(traits.block_bytes);
  if (blocks > std::numeric_limits<uint64_t>::max() / block_bytes) return false;
  *bytes = blocks * block_bytes;
  return true;
}

}  // namespace trine::quant
