// The encoders of single blocks, which encode.cc puts together to rows. x, and importance unless it
// is null, have as many values as the block; all are finite.

#ifndef TRINE_KERNELS_QUANT_ENCODE_BLOCKS_H_
#define TRINE_KERNELS_QUANT_ENCODE_BLOCKS_H_

#include "kernels/quant/block_types.h"

namespace trine::quant {

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

#endif  // TRINE_KERNELS_QUANT_ENCODE_BLOCKS_H_
