// Finds the kernels of products with many columns.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/hip/gemm/gemm_args.h"
#include "kernels/hip/weights/product.h"
#include "kernels/quant/block_types.h"

namespace trine::hip {

using GemmKernel = void (*)(GemmArgs);

struct TileShape {
  uint32_t rows = 0, columns = 0, threads = 0;
};
// true: units of 32 lanes have large tiles. AMD's compilers find no registers for the 128 sums that
// a lane of 32 has in a large tile. A lane of a wave of 64 has only 64 sums.
#if defined(TRINE_GPU_AMD)
inline constexpr bool kLargeTiles = false;
#else
inline constexpr bool kLargeTiles = true;
#endif
constexpr bool HasWholeWaves(MatrixUnit unit) {
  return unit == MatrixUnit::kMfma || unit == MatrixUnit::kMfmaGfx942;
}
// Large tiles leave too few registers for types that are loaded in pieces of two bytes.
constexpr bool FitsLargeWaves(quant::Type type, bool packed) {
  using quant::Type;
  return packed || (type != Type::kQ2_K && type != Type::kQ3_K && type != Type::kQ6_K);
}
constexpr bool HasLargeTiles(MatrixUnit unit, quant::Type type, bool packed) {
  if (unit == MatrixUnit::kWmma || unit == MatrixUnit::kWmmaGfx12) return false;
  return HasWholeWaves(unit) ? FitsLargeWaves(type, packed) : kLargeTiles;
}

inline constexpr uint32_t kGemmThreads = 256;  // in a block; with waves of 64 it has 512
inline constexpr TileShape kLargeTile = {64, 64, kGemmThreads};
inline constexpr TileShape kSmallTile = {32, 32, kGemmThreads};
inline constexpr TileShape kFloatTile = {32, 32, 512};
inline constexpr uint32_t kLeastTileColumns = 16;  // of all kernels

// Return the kernel for a type, or nullptr if the function has no kernel for the type or for the
// unit.
GemmKernel SmallBlockGemm(quant::Type type, MatrixUnit unit, bool large);
GemmKernel SuperBlockGemm(quant::Type type, MatrixUnit unit, bool large);
GemmKernel PackedGemm(quant::Type type, MatrixUnit unit, bool large);
GemmKernel FloatGemm(quant::Type type, bool packed);

// A kernel, and how it is started.
struct TiledGemm {
  GemmKernel kernel = nullptr;
  TileShape tile = {};
  uint32_t shared_bytes = 0;  // dynamic shared memory
  uint32_t resident = 1;      // blocks of threads on a multiprocessor
};

// Kernels for packed weights, the narrowest tiles first, or none if there are none for the type.
// Only for MatrixUnit::kMma. Product::q must have factors by class.
using TiledGemms = std::array<TiledGemm, 3>;
TiledGemms ByClassGemm(quant::Type type);  // one class after the other
TiledGemms ByWarpGemm(quant::Type type);   // each warp has a class

}  // namespace trine::hip
