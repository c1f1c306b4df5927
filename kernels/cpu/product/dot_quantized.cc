// Multiplies rows of quantised weights with columns of quantised activations.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/product/chunk_dot.h"
#include "kernels/cpu/product/chunk_tile.h"
#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/fill_blocks.h"
#include "kernels/cpu/product/finish.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

template <Type kType>
void DotRows(const WeightRows& weights, const Columns& columns, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const std::byte* row = weights.data + r * weights.stride;
    for (int c = 0; c < columns.count; ++c) {
      const float dot = ChunkDot<kType>(row, weights.k, columns.chunks[c], columns.step);
      columns.y[c][r] = Finish(dot, weights.bias, r);
    }
  }
}

// Multiplies rows [first, first + count), count <= kTileRows.
template <Type kType>
void DotTile(const WeightRows& weights, const Columns& columns, int64_t first, int count) {
  const std::byte* rows[kTileRows];
  FindRows(weights, first, first + count, rows);
  ChunkTile tile;
  UseOwnBytes(&tile);
  TileSums sums[kMaxColumns / kCellColumns];
  const int64_t blocks = weights.k / quant::kGroupValues;
  for (int64_t block = 0; block < blocks; block += kTileBlocks) {
    const int64_t left = blocks - block, chunk = block / quant::kSuperGroups;
    const int n = static_cast<int>(left < kTileBlocks ? left : kTileBlocks);
    for (int t = 0; t < BlocksOfClass(n, 0); ++t) {
      FillPlainChunk<kType>(rows, weights.k, kDotBytes, chunk + t, kTileClasses,
                            [&](int j) { return PartsOf(&tile, j, t); });
    }
    MultiplyTile(tile, Format<kType>::kTraits, {n, chunk, block == 0, left <= kTileBlocks}, columns,
                 sums);
  }
  FinishTile(sums, weights, first, {first, first + count}, columns);
}

template <Type kType>
void Dot(const WeightRows& weights, const Columns& columns, Range rows) {
  if (!columns.paired && !GoByTiles(columns, kTileMinColumns))
    return DotRows<kType>(weights, columns, rows);
  for (int64_t first = rows.begin; first < rows.end; first += kTileRows) {
    const int64_t left = rows.end - first;
    DotTile<kType>(weights, columns, first, static_cast<int>(left < kTileRows ? left : kTileRows));
  }
}

}  // namespace

void DotQuantizedColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  quant::CallForWeights(weights.type, [&]<Type kType>() { Dot<kType>(weights, columns, rows); });
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
