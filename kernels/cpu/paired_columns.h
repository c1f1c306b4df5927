// Columns of activations in pairs, for the instruction that multiplies pairs (int8_dot.h): of the
// q of two chunks, eight values of the one stand beside the same eight of the other, so that a
// block of both is 64 bytes, the first four blocks in the first chunk and the others in the second.
// The rest of a chunk stays its own.

#ifndef TRINE_KERNELS_CPU_PAIRED_COLUMNS_H_
#define TRINE_KERNELS_CPU_PAIRED_COLUMNS_H_

#include <cstdint>

#include "kernels/cpu/activations.h"
#include "kernels/cpu/int8_dot.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Whether a product's activations lie in pairs, but for a last column without a partner.
TRINE_INLINE bool LieInPairs(int64_t columns) { return kPairs && columns >= kMinPairedRows; }

constexpr int kPairedBlocks = quant::kSuperGroups / 2;  // of two chunks, in one

// The values of one chunk into those of its pair; `which`: the first of them, or the second.
TRINE_INLINE void StoreToPair(const int8_t* q, int which, int8_t* first, int8_t* second) {
  constexpr int kHalf = quant::kSuperValues / 2;
  for (int i = 0; i < kHalf; i += 8) __builtin_memcpy(first + 2 * i + 8 * which, q + i, 8);
  for (int i = 0; i < kHalf; i += 8) {
    __builtin_memcpy(second + 2 * i + 8 * which, q + kHalf + i, 8);
  }
}

// The values of one chunk out of those of its pair.
TRINE_INLINE void LoadFromPair(const int8_t* first, const int8_t* second, int which, int8_t* q) {
  constexpr int kHalf = quant::kSuperValues / 2;
  for (int i = 0; i < kHalf; i += 8) __builtin_memcpy(q + i, first + 2 * i + 8 * which, 8);
  for (int i = 0; i < kHalf; i += 8) {
    __builtin_memcpy(q + kHalf + i, second + 2 * i + 8 * which, 8);
  }
}

// So long are rows at the most that are taken out of pairs, for a product that wants them one by
// one.
constexpr int64_t kMaxUnpairedValues = 8192;

// Block j of a pair.
TRINE_INLINE const int8_t* BlockOfPair(const int8_t* first, const int8_t* second, int j) {
  const int8_t* q = j < kPairedBlocks ? first : second;
  return q + 2 * quant::kGroupValues * (j % kPairedBlocks);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_PAIRED_COLUMNS_H_
