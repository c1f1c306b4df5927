// Columns of activations in pairs, for the instruction that multiplies pairs (int8_dot.h). The q of
// two chunks are interleaved: eight values of one chunk, then the same eight of the other. A block
// of both has 64 bytes; the first four blocks lie in the first chunk, the others in the second. The
// other members of the chunks stay where they are.

#pragma once

#include <cstdint>

#include "kernels/cpu/levels/activations.h"
#include "kernels/cpu/simd/int8_dot.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Returns whether a product's activations lie in pairs. A last column without a partner does not.
TRINE_INLINE bool LieInPairs(int64_t columns) { return kPairs && columns >= kMinPairedRows; }

constexpr int kPairedBlocks = quant::kSuperGroups / 2;  // the blocks of a pair in each chunk

// Stores the values of one chunk into its pair. `which`: 0 for the pair's first, 1 for its second.
TRINE_INLINE void StoreToPair(const int8_t* q, int which, int8_t* first, int8_t* second) {
  constexpr int kHalf = quant::kSuperValues / 2;
  for (int i = 0; i < kHalf; i += 8) __builtin_memcpy(first + 2 * i + 8 * which, q + i, 8);
  for (int i = 0; i < kHalf; i += 8) {
    __builtin_memcpy(second + 2 * i + 8 * which, q + kHalf + i, 8);
  }
}

// Loads the values of one chunk out of its pair.
TRINE_INLINE void LoadFromPair(const int8_t* first, const int8_t* second, int which, int8_t* q) {
  constexpr int kHalf = quant::kSuperValues / 2;
  for (int i = 0; i < kHalf; i += 8) __builtin_memcpy(q + i, first + 2 * i + 8 * which, 8);
  for (int i = 0; i < kHalf; i += 8) {
    __builtin_memcpy(q + kHalf + i, second + 2 * i + 8 * which, 8);
  }
}

// The most values of a column that is taken out of its pair, for a product that reads single
// columns.
constexpr int64_t kMaxUnpairedValues = 8192;

// Returns block j of a pair.
TRINE_INLINE const int8_t* BlockOfPair(const int8_t* first, const int8_t* second, int j) {
  const int8_t* q = j < kPairedBlocks ? first : second;
  return q + 2 * quant::kGroupValues * (j % kPairedBlocks);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
