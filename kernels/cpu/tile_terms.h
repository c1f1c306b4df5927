// The float part of a tile's products: one term per row, column and block.

#ifndef TRINE_KERNELS_CPU_TILE_TERMS_H_
#define TRINE_KERNELS_CPU_TILE_TERMS_H_

#include "kernels/cpu/activations.h"
#include "kernels/cpu/chunk_tile.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// M of docs/numerics.md, as a float, of block (j, t).
template <FormatTraits kTraits>
TRINE_INLINE TileFloats TileMinimums(const ChunkTile& tile, int j, int t,
                                     const ActivationChunk& x) {
  const auto sum = [](int32_t value) { return Splat<kTileRows>(static_cast<float>(value)); };
  if constexpr (kTraits.minimums == Minimums::kHalf) {
    return Load<kTileRows>(tile.min[0][j][t]) * sum(x.half_sum[0][j]) +
           Load<kTileRows>(tile.min[1][j][t]) * sum(x.half_sum[1][j]);
  } else if constexpr (kTraits.minimums == Minimums::kBlock) {
    return Load<kTileRows>(tile.min[0][j][t]) * sum(x.sum[j]);
  } else {
    return sum(-x.sum[j]);
  }
}

// `scaled`: I, as a float.
template <FormatTraits kTraits>
TRINE_INLINE TileFloats TileTerms(const ChunkTile& tile, int j, int t, const ActivationChunk& x,
                                  TileFloats scaled) {
  const TileFloats d_a = Splat<kTileRows>(x.d[j]);
  const TileFloats terms = (Load<kTileRows>(tile.d[j][t]) * d_a) * scaled;
  if constexpr (kTraits.minimums == Minimums::kNone) {
    return terms;
  } else {
    return terms -
           (Load<kTileRows>(tile.dmin[j][t]) * d_a) * TileMinimums<kTraits>(tile, j, t, x);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_TILE_TERMS_H_
