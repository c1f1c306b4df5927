// Rows of f32 as any weight type: the counterpart of dequantize.h.
//
// A quantised block is fitted, not merely rounded: scales and minimums are those of the least
// squared error found among several starting points, each refined, and are judged as they are
// stored, with their own rounding. docs/quantize.md describes the search and gives its results.
//
// The bytes are the same on every machine: binary32 and binary64 add, subtract, multiply and divide
// in a fixed order, compiled without contraction, and no library function. Denormals must not be
// flushed.

#ifndef TRINE_KERNELS_QUANT_ENCODE_H_
#define TRINE_KERNELS_QUANT_ENCODE_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// Every type a weight can have. The others are i32 and q8_kv, which is a cache's.
bool CanEncode(Type type);

// Writes RowBytes(type, values) bytes to `out`, aligned as a row of the type is.
//
// `importance` is null, or how much an error in each of the `values` columns matters: the mean
// square of what the column is multiplied with, or anything proportional to it.
//
// False, with `out` unspecified, when the row is no whole number of blocks, the type can not be
// encoded, a value is an infinity or NaN, or an importance is negative, infinite or NaN. Magnitudes
// beyond what the type can hold become the largest it can.
bool EncodeRow(Type type, const float* x, int64_t values, const float* importance, void* out);

// True when TQ1_0 and TQ2_0 hold the row as it is: each block of 256 has one magnitude beside zero,
// and an f16 can hold it.
bool IsTernary(const float* x, int64_t values);

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_ENCODE_H_
