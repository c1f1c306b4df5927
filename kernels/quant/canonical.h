// Whether a value is one that a graph operation may hand on, for those who look at others' values.

#ifndef TRINE_KERNELS_QUANT_CANONICAL_H_
#define TRINE_KERNELS_QUANT_CANONICAL_H_

#include <cstdint>

#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"

namespace trine::quant {

// Canon(x) has the bits of x. Without a branch, so that loops over it become vector code.
static constexpr bool IsCanonical(float x) {
  const uint32_t bits = Bits(x), least = Bits(kTiny);
  return (((bits & 0x7fffffffu) - least) <= Bits(kHuge) - least) | (bits == 0);
}

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_CANONICAL_H_
