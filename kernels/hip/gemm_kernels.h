// The kernels of products with many columns, for the makers of their launches.
#ifndef TRINE_KERNELS_HIP_GEMM_KERNELS_H_
#define TRINE_KERNELS_HIP_GEMM_KERNELS_H_

#include "kernels/hip/gemm_args.h"
#include "kernels/hip/product.h"
#include "kernels/quant/block_types.h"

namespace trine::hip {

using GemmKernel = void (*)(GemmArgs);

struct TileShape {
  uint32_t rows, columns, threads;
};
// AMD's compilers find no registers for the 128 sums that a thread of a group of 32 has in a large
// one. In a wave of 64 there are 64 of each.
#if defined(TRINE_GPU_AMD)
inline constexpr bool kLargeTiles = false;
#else
inline constexpr bool kLargeTiles = true;
#endif
constexpr bool HasWholeWaves(MatrixUnit unit) {
  return unit == MatrixUnit::kMfma || unit == MatrixUnit::kMfmaGfx942;
}
// What is read of these in pieces of two bytes takes too many registers beside them.
constexpr bool FitsLargeWaves(quant::Type type, bool packed) {
  using quant::Type;
  return packed || (type != Type::kQ2_K && type != Type::kQ3_K && type != Type::kQ6_K);
}
constexpr bool HasLargeTiles(MatrixUnit unit, quant::Type type, bool packed) {
  if (unit == MatrixUnit::kWmma || unit == MatrixUnit::kWmmaGfx12) return false;
  return HasWholeWaves(unit) ? FitsLargeWaves(type, packed) : kLargeTiles;
}

inline constexpr uint32_t kGemmThreads = 256;  // of a block; twice as many in waves of 64
inline constexpr TileShape kLargeTile = {64, 64, kGemmThreads};
inline constexpr TileShape kSmallTile = {32, 32, kGemmThreads};
inline constexpr TileShape kFloatTile = {32, 32, 512};

// nullptr for other types, and for units that this is not built for.
GemmKernel SmallBlockGemm(quant::Type type, MatrixUnit unit, bool large);
GemmKernel SuperBlockGemm(quant::Type type, MatrixUnit unit, bool large);
GemmKernel PackedGemm(quant::Type type, MatrixUnit unit, bool large);
GemmKernel FloatGemm(quant::Type type, bool packed);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMM_KERNELS_H_
