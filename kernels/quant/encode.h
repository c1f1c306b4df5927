// Encodes rows of f32 as any weight type: the counterpart of dequantize.h.
//
// A quantised block is fitted, not merely rounded. The search begins at several points and refines
// each; it takes the scales and minimums with the least squared error. The error includes the
// rounding of the scales as they are stored. docs/quantize.md describes the search and its results.
//
// The bytes are the same on every machine: the code adds, subtracts, multiplies and divides
// binary32 and binary64 numbers in a fixed order, is compiled without contraction and calls no
// library function. Denormals must not be flushed.
#pragma once

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// Returns whether a weight can have the type: true for all but i32 and q8_kv, which is a cache's.
bool CanEncode(Type type);

// Writes RowBytes(type, values) bytes to `out`, which must be aligned as a row of the type.
//
// `importance` is null, or says how much an error in each of the `values` columns matters: the mean
// square of the activations that the column is multiplied with, or anything proportional to it.
//
// Returns false, with `out` unspecified, if the row has no whole number of blocks, the type can't
// be encoded, a value is an infinity or NaN, or an importance is negative, infinite or NaN.
// Magnitudes beyond the type's range become its largest.
bool EncodeRow(Type type, const float* x, int64_t values, const float* importance, void* out);

// Returns whether TQ1_0 and TQ2_0 can hold the row exactly: each block of 256 values has only zeros
// and one magnitude, and an f16 can hold that magnitude.
bool IsTernary(const float* x, int64_t values);

// Encode single blocks; EncodeRow makes rows from them. x and importance (unless it is null) have
// the values of one block, all finite.
void EncodeBlock(const float* x, const float* importance, BlockQ4_0* block);
void EncodeBlock(const float* x, const float* importance, BlockQ4_1* block);
void EncodeBlock(const float* x, const float* importance, BlockQ5_0* block);
void EncodeBlock(const float* x, const float* importance, BlockQ5_1* block);
void EncodeBlock(const float* x, const float* importance, BlockQ8_0* block);
void EncodeBlock(const float* x, const float* importance, BlockQ2_K* block);
void EncodeBlock(const float* x, const float* importance, BlockQ3_K* block);
void EncodeBlock(const float* x, const float* importance, BlockQ4_K* block);
void EncodeBlock(const float* x, const float* importance, BlockQ5_K* block);
void EncodeBlock(const float* x, const float* importance, BlockQ6_K* block);
void EncodeBlock(const float* x, const float* importance, BlockIQ4_NL* block);
void EncodeBlock(const float* x, const float* importance, BlockIQ4_XS* block);
void EncodeBlock(const float* x, const float* importance, BlockTQ1_0* block);
void EncodeBlock(const float* x, const float* importance, BlockTQ2_0* block);
void EncodeBlock(const float* x, const float* importance, BlockMXFP4* block);

}  // namespace trine::quant
