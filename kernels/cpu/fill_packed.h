// A block of packed weights unpacked for many columns.

#ifndef TRINE_KERNELS_CPU_FILL_PACKED_H_
#define TRINE_KERNELS_CPU_FILL_PACKED_H_

#include <cstdint>

#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/packed_format.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The scales of block j of a chunk of `blocks`, for every row of the group.
template <Type kType>
TRINE_INLINE void FillPackedScales(const uint8_t* chunk, int blocks, int j, BlockParts to) {
  using P = Packed<kType>;
  for (int row = 0; row < kTileRows; row += kSliceRows) {
    const BlockScales s = LoadScales<kType>(chunk, blocks, j, row);
    StoreRows(s.d, row, to.d);
    if constexpr (P::kTraits.minimums != Minimums::kNone) StoreRows(s.dmin, row, to.dmin);
    for (int h = 0; h < P::kScales; ++h) StoreRows(s.scale[h], row, to.scale[h]);
    if constexpr (P::kHasMins) StoreRows(s.min, row, to.min[0]);
  }
}

// Its values too.
template <Type kType>
TRINE_INLINE void FillPackedBlock(const uint8_t* chunk, int blocks, int j, TileBytesAre bytes,
                                  BlockParts to) {
  using P = Packed<kType>;
  const SliceBytes offset = SplatVector(bytes == TileBytesAre::kWeights ? OffsetOf(P::kTraits) : 0);
  const uint8_t* block = chunk + P::HeaderBytes(blocks) + j * P::kBlockBytes;
  for (int row = 0; row < kTileRows; row += kSliceRows) {
    SliceBytes w[4];
    LoadHalf<kType, 0>(block + 4 * row, w);
    if constexpr (kPairs && !P::kInPairs) OrderQuads(w);
    for (int i = 0; i < 4; ++i) Store(w[i] - offset, &to.q[i][4 * row]);
    LoadHalf<kType, 1>(block + 4 * row, w);
    if constexpr (kPairs && !P::kInPairs) OrderQuads(w);
    for (int i = 0; i < 4; ++i) Store(w[i] - offset, &to.q[4 + i][4 * row]);
  }
  FillPackedScales<kType>(chunk, blocks, j, to);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_FILL_PACKED_H_
