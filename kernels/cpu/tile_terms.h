// The float part of a tile's products: one term per row, column and block.

#ifndef TRINE_KERNELS_CPU_TILE_TERMS_H_
#define TRINE_KERNELS_CPU_TILE_TERMS_H_

#include "kernels/cpu/activations.h"
#include "kernels/cpu/chunk_tile.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// M of docs/numerics.md, as a float, of block (j, t), for the slice that begins at `row`.
template <FormatTraits kTraits>
TRINE_INLINE SliceFloats TileMinimums(const ChunkTile& tile, int j, int t, int row,
                                      const ActivationChunk& x) {
  const auto sum = [](int32_t value) { return Splat<kSliceRows>(static_cast<float>(value)); };
  if constexpr (kTraits.minimums == Minimums::kHalf) {
    return Load<kSliceRows>(&tile.min[0][j][t][row]) * sum(x.half_sum[0][j]) +
           Load<kSliceRows>(&tile.min[1][j][t][row]) * sum(x.half_sum[1][j]);
  } else if constexpr (kTraits.minimums == Minimums::kBlock) {
    return Load<kSliceRows>(&tile.min[0][j][t][row]) * sum(x.sum[j]);
  } else {
    return sum(-x.sum[j]);
  }
}

// `scaled`: I, as a float.
template <FormatTraits kTraits>
TRINE_INLINE SliceFloats TileTerms(const ChunkTile& tile, int j, int t, int row,
                                   const ActivationChunk& x, SliceFloats scaled) {
  const SliceFloats d_a = Splat<kSliceRows>(x.d[j]);
  const SliceFloats terms = (Load<kSliceRows>(&tile.d[j][t][row]) * d_a) * scaled;
  if constexpr (kTraits.minimums == Minimums::kNone) {
    return terms;
  } else {
    return terms - (Load<kSliceRows>(&tile.dmin[j][t][row]) * d_a) *
                       TileMinimums<kTraits>(tile, j, t, row, x);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_TILE_TERMS_H_
