#include "kernels/quant/block_types.h"

#include <array>
#include <bit>
#include <cstddef>
#include <limits>

namespace trine::quant {

static_assert(std::endian::native == std::endian::little,
              "Blocks are read in place from little-endian files");

namespace {

constexpr auto kTraits = [] {
  std::array<TypeTraits, static_cast<size_t>(Type::kMXFP4) + 1> all;
  all.fill({"unknown", 1, 0});
  const auto set = [&](Type type, const TypeTraits& traits) {
    all[static_cast<size_t>(type)] = traits;
  };
  set(Type::kF32, {"f32", 1, 4});
  set(Type::kF16, {"f16", 1, 2});
  set(Type::kBF16, {"bf16", 1, 2});
  set(Type::kI32, {"i32", 1, 4});
  set(Type::kQ4_0, {"q4_0", 32, sizeof(BlockQ4_0)});
  set(Type::kQ4_1, {"q4_1", 32, sizeof(BlockQ4_1)});
  set(Type::kQ5_0, {"q5_0", 32, sizeof(BlockQ5_0)});
  set(Type::kQ5_1, {"q5_1", 32, sizeof(BlockQ5_1)});
  set(Type::kQ8_0, {"q8_0", 32, sizeof(BlockQ8_0)});
  set(Type::kQ8_KV, {"q8_kv", 32, sizeof(BlockQ8_KV)});
  set(Type::kQ2_K, {"q2_k", kSuperValues, sizeof(BlockQ2_K)});
  set(Type::kQ3_K, {"q3_k", kSuperValues, sizeof(BlockQ3_K)});
  set(Type::kQ4_K, {"q4_k", kSuperValues, sizeof(BlockQ4_K)});
  set(Type::kQ5_K, {"q5_k", kSuperValues, sizeof(BlockQ5_K)});
  set(Type::kQ6_K, {"q6_k", kSuperValues, sizeof(BlockQ6_K)});
  set(Type::kIQ4_NL, {"iq4_nl", 32, sizeof(BlockIQ4_NL)});
  set(Type::kIQ4_XS, {"iq4_xs", kSuperValues, sizeof(BlockIQ4_XS)});
  set(Type::kTQ1_0, {"tq1_0", kSuperValues, sizeof(BlockTQ1_0)});
  set(Type::kTQ2_0, {"tq2_0", kSuperValues, sizeof(BlockTQ2_0)});
  set(Type::kMXFP4, {"mxfp4", 32, sizeof(BlockMXFP4)});
  return all;
}();

}  // namespace

TypeTraits Traits(Type type) {
  const auto index = static_cast<size_t>(type);
  return kTraits[index < kTraits.size() ? index : 0];
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
