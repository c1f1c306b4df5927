// The launches of gemv.h by weights, in several files: compilers of devices take them apart.
#ifndef TRINE_KERNELS_HIP_GEMV_PARTS_H_
#define TRINE_KERNELS_HIP_GEMV_PARTS_H_

#include <span>

#include "kernels/hip/gemv_frame.h"
#include "kernels/quant/block_types.h"

namespace trine::hip {

GemvArgs GemvArgsOf(std::span<const Product> products, const DeviceShape& shape);

// Types of files in blocks of 32 and of 256 values; `words`: all blocks begin at multiples of four
// bytes.
Launch SmallBlockGemv(quant::Type type, bool words, const GemvArgs& args);
Launch SuperBlockGemv(quant::Type type, bool words, const GemvArgs& args);
Launch PackedGemv(quant::Type type, const GemvArgs& args);
// Packed: for few long rows and one column.
bool IsForSplitGemv(const GemvArgs& args);
Launch SplitGemv(quant::Type type, const GemvArgs& args);
// `wide`: rows begin at multiples of four values.
Launch FloatGemv(quant::Type type, bool wide, const GemvArgs& args);
Launch PackedF16Gemv(const GemvArgs& args);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMV_PARTS_H_
