// Rows of packed weights by columns of quantised activations.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/fill_packed.h"
#include "kernels/cpu/finish.h"
#include "kernels/cpu/packed_dot.h"
#include "kernels/cpu/packed_format.h"
#include "kernels/cpu/with_packed.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

template <Type kType, int kColumns>
void DotFewColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  PackedColumn<kType> prepared[kColumns];
  for (int c = 0; c < kColumns; ++c) {
    PackedColumn<kType>::Set(columns.chunks[c], columns.step, ActivationChunks(weights.k),
                             &prepared[c]);
  }
  const int64_t blocks = weights.k / quant::kGroupValues;
  for (int64_t g = rows.begin / kTileRows; g * kTileRows < rows.end; ++g) {
    const auto* group = reinterpret_cast<const uint8_t*>(weights.data + g * weights.stride);
    SliceFloats dots[kColumns][kSlices];
    DotGroup<kType, kColumns>(group, blocks, prepared, dots);
    for (int c = 0; c < kColumns; ++c) {
      for (int i = 0; i < kSlices; ++i) {
        FinishRows(dots[c][i], weights.bias, g * kTileRows + i * kSliceRows, rows, columns.y[c]);
      }
    }
  }
}

// The first `count` blocks of a group's chunks from `first` on.
template <Type kType>
void FillTile(const uint8_t* group, int64_t first, int count, ChunkTile* tile) {
  for (int t = 0; t < BlocksOfClass(count, 0); ++t) {
    const int left = count - t * quant::kSuperGroups;
    const int blocks = left < quant::kSuperGroups ? left : quant::kSuperGroups;
    const uint8_t* chunk = group + (first + t) * Packed<kType>::ChunkBytes(quant::kSuperGroups);
    for (int j = 0; j < blocks; ++j) {
      FillPackedBlock<kType>(chunk, blocks, j, kDotBytes, PartsOf(tile, j, t));
    }
  }
}

template <Type kType>
void DotManyColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  const int64_t blocks = weights.k / quant::kGroupValues;
  ChunkTile tile;
  TileSums sums[kMaxColumns];
  for (int64_t g = rows.begin / kTileRows; g * kTileRows < rows.end; ++g) {
    const auto* group = reinterpret_cast<const uint8_t*>(weights.data + g * weights.stride);
    __builtin_memset(sums, 0, sizeof(sums));
    for (int64_t block = 0; block < blocks; block += kTileBlocks) {
      const int64_t left = blocks - block, chunk = block / quant::kSuperGroups;
      const int n = static_cast<int>(left < kTileBlocks ? left : kTileBlocks);
      FillTile<kType>(group, chunk, n, &tile);
      MultiplyTile(tile, Packed<kType>::kTraits, n, chunk, columns, sums);
    }
    FinishTile(sums, weights, g * kTileRows, rows, columns);
  }
}

template <Type kType>
void Dot(const WeightRows& weights, const Columns& columns, Range rows) {
  switch (columns.count) {
    case 1:
      return DotFewColumns<kType, 1>(weights, columns, rows);
    case 2:
      return DotFewColumns<kType, 2>(weights, columns, rows);
    case 3:
      return DotFewColumns<kType, 3>(weights, columns, rows);
    default:
      return DotManyColumns<kType>(weights, columns, rows);
  }
}

}  // namespace

void DotPackedColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  if (rows.begin >= rows.end) return;
  WithPackedType(weights.type, [&]<Type kType>() { Dot<kType>(weights, columns, rows); });
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
