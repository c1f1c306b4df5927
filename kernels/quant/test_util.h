// Helpers for tests of exact arithmetic: inputs that are the same on every machine, a hash of
// outputs, weights of any type, and a guard that turns denormals off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/quant/block_types.h"
#include "kernels/quant/scalar.h"

namespace trine::quant {

// SplitMix64. The distributions of <random> differ between standard libraries. So does the order of
// two calls in one expression: make one call per statement.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  // Returns a multiple of 2^-23 in [-1, 1).
  float Uniform() { return static_cast<float>(Below(1 << 24) - (1 << 23)) * 0x1p-23f; }
  // Returns a number of either sign and any fraction, of a magnitude in [2^low, 2^(high + 1)).
  float Wide(int low, int high) {
    const uint32_t exponent = static_cast<uint32_t>(127 + low + Below(high - low + 1));
    return FromBits((static_cast<uint32_t>(Next()) & 0x807fffffu) | exponent << 23);
  }

 private:
  uint64_t state_;
};

// FNV-1a, 64 bits.
class Hash {
 public:
  void Add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      value_ = (value_ ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3ull;
    }
  }
  void Add(float x) { Add(&x, sizeof(x)); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325ull;
};

// Flushes denormals to zero, in results and operands, while it lives.
class ScopedFlushToZero {
 public:
  ScopedFlushToZero() : saved_(Get()) { Set(saved_ | kFlush); }
  ~ScopedFlushToZero() { Set(saved_); }
  ScopedFlushToZero(const ScopedFlushToZero&) = delete;
  ScopedFlushToZero& operator=(const ScopedFlushToZero&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kFlush = 0x8040;  // FTZ, DAZ
  static uint64_t Get() { return _mm_getcsr(); }
  static void Set(uint64_t value) { _mm_setcsr(static_cast<uint32_t>(value)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = 1ull << 24 | 1ull << 19;  // FZ, FZ16
  static uint64_t Get() {
    uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void Set(uint64_t value) { asm volatile("msr fpcr, %0" ::"r"(value) : "memory"); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t Get() { return 0; }
  static void Set(uint64_t) {}
#endif
  uint64_t saved_;
};

// The kinds of canonical activations that fill a row.
enum class Fill { kUniform, kWide, kTiny, kZero, kOutlier };
inline constexpr Fill kAllFills[] = {Fill::kUniform, Fill::kWide, Fill::kTiny, Fill::kZero,
                                     Fill::kOutlier};

inline float FillValue(Fill fill, Random* random) {
  switch (fill) {
    case Fill::kUniform:
      return Canon(random->Uniform());
    case Fill::kWide:
      return Canon(random->Wide(-50, 49));
    case Fill::kTiny:
      return Canon(random->Wide(-52, -45));
    case Fill::kZero:
      return 0.0f;
    case Fill::kOutlier: {
      const float scale = random->Below(50) == 0 ? 300.0f : 0.01f;
      return Canon(random->Uniform() * scale);
    }
  }
  return 0.0f;
}

// Returns a finite f16 of ordinary size, or of any size if `any`.
inline uint16_t RandomScale(bool any, Random* random) {
  if (!any) return F32ToF16(0.02f * random->Uniform());
  const int64_t magnitude = random->Below(0x7c00);
  return static_cast<uint16_t>(static_cast<uint64_t>(magnitude) | (random->Next() & 0x8000));
}

inline void SetScales(Type type, std::byte* block, bool any, Random* random) {
  const auto set_f16 = [&](size_t offset) {
    const uint16_t scale = RandomScale(any, random);
    std::memcpy(block + offset, &scale, sizeof(scale));
  };
  switch (type) {
    case Type::kQ4_0:
    case Type::kQ5_0:
    case Type::kQ8_0:
    case Type::kIQ4_NL:
    case Type::kIQ4_XS:
      return set_f16(0);
    case Type::kQ4_1:
    case Type::kQ5_1:
    case Type::kQ4_K:
    case Type::kQ5_K:
      set_f16(0);
      return set_f16(2);
    case Type::kQ2_K:
      set_f16(offsetof(BlockQ2_K, d));
      return set_f16(offsetof(BlockQ2_K, dmin));
    case Type::kQ3_K:
      return set_f16(offsetof(BlockQ3_K, d));
    case Type::kQ6_K:
      return set_f16(offsetof(BlockQ6_K, d));
    case Type::kTQ1_0:
      return set_f16(offsetof(BlockTQ1_0, d));
    case Type::kTQ2_0:
      return set_f16(offsetof(BlockTQ2_0, d));
    case Type::kMXFP4:
      block[0] = static_cast<std::byte>(any ? random->Below(255) : 118 + random->Below(8));
      return;
    case Type::kQ8_KV: {
      const float scale = any ? Abs(random->Wide(-37, 40)) : 0.01f;
      std::memcpy(block, &scale, sizeof(scale));
      return;
    }
    default:
      return;
  }
}

// Returns rows of a weight type that a loader would accept, with scales of every magnitude if
// `any`.
inline std::vector<std::byte> RandomWeights(Type type, int64_t values, bool any, Random* random) {
  const TypeTraits traits = Traits(type);
  std::vector<std::byte> bytes(static_cast<size_t>(values / traits.block_values) *
                               static_cast<size_t>(traits.block_bytes));
  const auto block_bytes = static_cast<size_t>(traits.block_bytes);
  for (size_t at = 0; at < bytes.size(); at += block_bytes) {
    std::byte* block = bytes.data() + at;
    if (IsQuantized(type)) {
      for (size_t i = 0; i < block_bytes; ++i) block[i] = static_cast<std::byte>(random->Next());
      SetScales(type, block, any, random);
      continue;
    }
    const float x = Canon(any ? random->Wide(-50, 49) : 0.1f * random->Uniform());
    const uint16_t half = type == Type::kF16 ? F32ToF16Saturated(x) : F32ToBf16(x);
    const bool is_half = type == Type::kF16 || type == Type::kBF16;
    std::memcpy(block, is_half ? static_cast<const void*>(&half) : &x, block_bytes);
  }
  return bytes;
}

// The types that a matmul's weights may have.
inline constexpr Type kWeightTypes[] = {
    Type::kF32,  Type::kF16,    Type::kBF16,   Type::kQ4_0,  Type::kQ4_1,  Type::kQ5_0,
    Type::kQ5_1, Type::kQ8_0,   Type::kQ2_K,   Type::kQ3_K,  Type::kQ4_K,  Type::kQ5_K,
    Type::kQ6_K, Type::kIQ4_NL, Type::kIQ4_XS, Type::kTQ1_0, Type::kTQ2_0, Type::kMXFP4,
};

}  // namespace trine::quant
