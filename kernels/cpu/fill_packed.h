// A block of packed weights unpacked for many columns.

#ifndef TRINE_KERNELS_CPU_FILL_PACKED_H_
#define TRINE_KERNELS_CPU_FILL_PACKED_H_

#include <cstdint>

#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/packed_format.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Block j of a chunk of `blocks`, for every row of the group.
template <Type kType>
TRINE_INLINE void FillPackedBlock(const uint8_t* chunk, int blocks, int j, TileBytesAre bytes,
                                  BlockParts to) {
  using P = Packed<kType>;
  constexpr FormatTraits kTraits = P::kTraits;
  const SliceBytes offset = SplatVector(bytes == TileBytesAre::kWeights ? OffsetOf(kTraits) : 0);
  const uint8_t* block = chunk + P::HeaderBytes(blocks) + j * P::kBlockBytes;
  for (int row = 0; row < kTileRows; row += kSliceRows) {
    SliceBytes w[4];
    LoadHalf<kType, 0>(block + 4 * row, w);
    for (int i = 0; i < 4; ++i) Store(w[i] - offset, &to.q[i][4 * row]);
    LoadHalf<kType, 1>(block + 4 * row, w);
    for (int i = 0; i < 4; ++i) Store(w[i] - offset, &to.q[4 + i][4 * row]);
    const BlockScales s = LoadScales<kType>(chunk, blocks, j, row);
    Store(s.d, to.d + row);
    if constexpr (kTraits.minimums != Minimums::kNone) Store(s.dmin, to.dmin + row);
    for (int h = 0; h < P::kScales; ++h) Store(s.scale[h], to.scale[h] + row);
    if constexpr (P::kHasMins) Store(s.min, to.min[0] + row);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_FILL_PACKED_H_
