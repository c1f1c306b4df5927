// Rows of quantised weights by columns of quantised activations.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/chunk_dot.h"
#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/finish.h"
#include "kernels/cpu/transpose.h"

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

template <int N>
TRINE_INLINE U32<N / 4> AsWords(Vec<uint8_t, N> x) {
  if constexpr (U32<N / 4>::kIsNative) {
    return {(typename U32<N / 4>::Raw) x.v};
  } else {
    return {AsWords(x.lo), AsWords(x.hi)};
  }
}

// One vector of each of eight rows, its lanes being classes, into rows [row, row + 8) of a tile.
TRINE_INLINE void StoreClasses(F32x8 (&rows)[8], int t, int row, TileOfFloats& tile) {
  Transpose(rows);
  for (int j = 0; j < kTileClasses; ++j) Store(rows[j], &tile[j][t][row]);
}

template <FormatTraits kTraits>
TRINE_INLINE void StoreChunks(const Chunk (&chunks)[8], TileBytesAre bytes, int t, int row,
                              ChunkTile* tile) {
  const int offset = bytes == TileBytesAre::kWeights ? OffsetOf(kTraits) : 0;
  for (int j = 0; j < kTileClasses; ++j) {
    U32x8 words[8];
    for (int r = 0; r < 8; ++r) words[r] = AsWords(chunks[r].q[j] - SplatByte(offset));
    Transpose(words);
    for (int i = 0; i < 8; ++i) {
      __builtin_memcpy(&tile->q[j][t][i][4 * row], &words[i], sizeof(words[i]));
    }
  }
  F32x8 floats[8];
  for (int r = 0; r < 8; ++r) floats[r] = chunks[r].d;
  StoreClasses(floats, t, row, tile->d);
  if constexpr (kTraits.minimums != Minimums::kNone) {
    for (int r = 0; r < 8; ++r) floats[r] = chunks[r].dmin;
    StoreClasses(floats, t, row, tile->dmin);
  }
  constexpr int kScales = kTraits.scales == Scales::kHalf    ? 2
                          : kTraits.scales == Scales::kBlock ? 1
                                                             : 0;
  constexpr int kMins = kTraits.minimums == Minimums::kHalf    ? 2
                        : kTraits.minimums == Minimums::kBlock ? 1
                                                               : 0;
  for (int h = 0; h < kScales; ++h) {
    for (int r = 0; r < 8; ++r) floats[r] = Convert<float>(chunks[r].scale[h]);
    StoreClasses(floats, t, row, tile->scale[h]);
  }
  for (int h = 0; h < kMins; ++h) {
    for (int r = 0; r < 8; ++r) floats[r] = Convert<float>(chunks[r].min[h]);
    StoreClasses(floats, t, row, tile->min[h]);
  }
}

// Chunks [first, first + count) of kTileRows rows.
template <Type kType>
void FillTile(const std::byte* const* rows, int64_t k, TileBytesAre bytes, int64_t first, int count,
              ChunkTile* tile) {
  for (int row = 0; row < kTileRows; row += 8) {
    for (int t = 0; t < count; ++t) {
      Chunk chunks[8];
      for (int r = 0; r < 8; ++r) ReadChunk<kType>(rows[row + r], first + t, k, &chunks[r]);
      StoreChunks<Format<kType>::kTraits>(chunks, bytes, t, row, tile);
    }
  }
}

// Rows [first, first + count), count <= kTileRows.
template <Type kType>
void DotTile(const WeightRows& weights, const Columns& columns, int64_t first, int count) {
  const std::byte* rows[kTileRows];
  for (int r = 0; r < kTileRows; ++r) {  // lanes without a row of their own repeat the last
    rows[r] = weights.data + (first + (r < count ? r : count - 1)) * weights.stride;
  }
  const TileBytesAre bytes = WantedBytes(columns);
  ChunkTile tile;
  TileSums sums[kPaddedColumns];
  __builtin_memset(sums, 0, sizeof(sums));
  const int64_t blocks = weights.k / quant::kGroupValues;
  for (int64_t block = 0; block < blocks; block += kTileBlocks) {
    const int64_t left = blocks - block, chunk = block / quant::kSuperGroups;
    const int n = static_cast<int>(left < kTileBlocks ? left : kTileBlocks);
    FillTile<kType>(rows, weights.k, bytes, chunk, BlocksOfClass(n, 0), &tile);
    MultiplyTile(tile, Format<kType>::kTraits, bytes, n, chunk, columns, sums);
  }
  FinishTile(sums, weights, first, {first, first + count}, columns);
}

template <Type kType>
void Dot(const WeightRows& weights, const Columns& columns, Range rows) {
  if (columns.count < kTileMinColumns) return DotRows<kType>(weights, columns, rows);
  for (int64_t first = rows.begin; first < rows.end; first += kTileRows) {
    const int64_t left = rows.end - first;
    DotTile<kType>(weights, columns, first, static_cast<int>(left < kTileRows ? left : kTileRows));
  }
}

}  // namespace

void DotQuantizedColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  switch (weights.type) {
    case Type::kQ4_0:
      return Dot<Type::kQ4_0>(weights, columns, rows);
    case Type::kQ4_1:
      return Dot<Type::kQ4_1>(weights, columns, rows);
    case Type::kQ5_0:
      return Dot<Type::kQ5_0>(weights, columns, rows);
    case Type::kQ5_1:
      return Dot<Type::kQ5_1>(weights, columns, rows);
    case Type::kQ8_0:
      return Dot<Type::kQ8_0>(weights, columns, rows);
    case Type::kQ2_K:
      return Dot<Type::kQ2_K>(weights, columns, rows);
    case Type::kQ3_K:
      return Dot<Type::kQ3_K>(weights, columns, rows);
    case Type::kQ4_K:
      return Dot<Type::kQ4_K>(weights, columns, rows);
    case Type::kQ5_K:
      return Dot<Type::kQ5_K>(weights, columns, rows);
    case Type::kQ6_K:
      return Dot<Type::kQ6_K>(weights, columns, rows);
    case Type::kIQ4_NL:
      return Dot<Type::kIQ4_NL>(weights, columns, rows);
    case Type::kIQ4_XS:
      return Dot<Type::kIQ4_XS>(weights, columns, rows);
    case Type::kTQ1_0:
      return Dot<Type::kTQ1_0>(weights, columns, rows);
    case Type::kTQ2_0:
      return Dot<Type::kTQ2_0>(weights, columns, rows);
    case Type::kMXFP4:
      return Dot<Type::kMXFP4>(weights, columns, rows);
    case Type::kF32:
    case Type::kF16:
    case Type::kBF16:
    case Type::kI32:
    case Type::kQ8_KV:
      return;  // no quantised weights
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
