// Multiplies rows of packed weights with columns of quantised activations.

#include <cstdint>

#include "kernels/cpu/product/chunk_tile.h"
#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/fill_blocks.h"
#include "kernels/cpu/product/finish.h"
#include "kernels/cpu/product/packed_dot.h"
#include "kernels/cpu/product/packed_format.h"
#include "kernels/cpu/product/paired_columns.h"
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "kernels/cpu/product/ordered_column.h"
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr int kNever = kMaxColumns + 1;

// Returns the least number of columns for which unpacking a tile once is faster than unpacking a
// group of rows in registers for a few columns at a time, as it was measured
// (docs/cpu-kernels.md#how-many-columns).
template <Type kType>
constexpr int TileMinColumns() {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  return kMinPairedRows;
#elif defined(__ARM_FEATURE_DOTPROD)
  return 12;
#elif defined(__aarch64__)
  return kNever;
#elif defined(__AVX2__)
  constexpr PackedTraits kPlanes = Packed<kType>::kPlanes;
  const bool unpacks_fast = kPlanes.high_bits == 0 && kPlanes.table == nullptr;
  return unpacks_fast ? kNever : 32;
#else
  return 8;
#endif
}

// The most columns that are multiplied together with a group of rows in registers.
constexpr int kTogether = 4;

// Copies the values of column c out of its pair.
TRINE_INLINE void Unpair(const Columns& columns, int c, int64_t chunks, int8_t* q) {
  const ActivationChunk* const first = columns.chunks[c & ~1];
  const ActivationChunk* const second = columns.chunks[c | 1];
  for (int64_t t = 0; t < chunks; ++t) {
    LoadFromPair(first[t * columns.step].q, second[t * columns.step].q, c & 1,
                 q + t * quant::kSuperValues);
  }
}

// Multiplies columns [first, first + kColumns).
template <Type kType, int kColumns>
TRINE_FEW_SPILLS void DotTogether(const WeightRows& weights, const Columns& columns, int first,
                                  Range rows) {
  PackedColumn<kType> prepared[kColumns];
  alignas(64) int8_t unpaired[kPairs ? kColumns : 1][kPairs ? kMaxUnpairedValues : 1];
  const int64_t chunks = ActivationChunks(weights.k);
  for (int c = 0; c < kColumns; ++c) {
    PackedColumn<kType>::Set(columns.chunks[first + c], columns.step, chunks, &prepared[c]);
    if constexpr (kPairs) {
      if (!columns.paired || ((first + c) | 1) >= columns.count) continue;  // it has no partner
      Unpair(columns, first + c, chunks, unpaired[c]);
      prepared[c].q = unpaired[c];
      prepared[c].q_step = quant::kSuperValues;
    }
  }
  const int64_t blocks = weights.k / quant::kGroupValues;
  for (int64_t g = rows.begin / kTileRows; g * kTileRows < rows.end; ++g) {
    const auto* group = reinterpret_cast<const uint8_t*>(weights.data + g * weights.stride);
    SliceFloats dots[kColumns][kSlices];
    DotGroup<kType, kColumns>(group, blocks, prepared, dots);
    for (int c = 0; c < kColumns; ++c) {
      for (int i = 0; i < kSlices; ++i) {
        FinishRows(dots[c][i], weights.bias, g * kTileRows + i * kSliceRows, rows,
                   columns.y[first + c]);
      }
    }
  }
}

// Multiplies more than one column, in as few parts as possible, which have about the same size.
template <Type kType>
void DotInParts(const WeightRows& weights, const Columns& columns, Range rows) {
  for (int first = 0, count; first < columns.count; first += count) {
    const int left = columns.count - first, parts = (left + kTogether - 1) / kTogether;
    count = (left + parts - 1) / parts;
    switch (count) {
      case 2:
        DotTogether<kType, 2>(weights, columns, first, rows);
        break;
      case 3:
        DotTogether<kType, 3>(weights, columns, first, rows);
        break;
      default:
        static_assert(kTogether == 4);
        DotTogether<kType, 4>(weights, columns, first, rows);
    }
  }
}

template <Type kType>
void DotFewColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  if (columns.count <= kTogether) return DotInParts<kType>(weights, columns, rows);
  // All parts of the columns are multiplied with these weights while they are in a second-level
  // cache.
  const int64_t bytes = columns.tuning.caches.second_level / 8;
  const int64_t in_turn = (weights.stride < bytes ? bytes / weights.stride : 1) * kTileRows;
  for (int64_t begin = rows.begin, end; begin < rows.end; begin = end) {
    end = (begin / in_turn + 1) * in_turn;
    if (end > rows.end) end = rows.end;
    DotInParts<kType>(weights, columns, {begin, end});
  }
}

#if defined(__ARM_FEATURE_MATMUL_INT8)

template <Type kType>
[[gnu::noinline]] void DotOrderedColumn(const WeightRows& weights, const Columns& columns,
                                        Range rows) {
  OrderedColumn<kType> column;
  OrderedColumn<kType>::Set(columns.chunks[0], columns.step, ActivationChunks(weights.k), &column);
  const OrderedConstants constants = ConstantsOf<kType>();
  for (int64_t g = rows.begin / kTileRows; g * kTileRows < rows.end; ++g) {
    const auto* group = reinterpret_cast<const uint8_t*>(weights.data + g * weights.stride);
    SliceFloats dots[kSlices];
    DotOrderedGroup<kType>(group, weights.k / quant::kGroupValues, column, constants, dots);
    for (int i = 0; i < kSlices; ++i) {
      FinishRows(dots[i], weights.bias, g * kTileRows + i * kSliceRows, rows, columns.y[0]);
    }
  }
}

#endif

template <Type kType>
void DotOneColumn(const WeightRows& weights, const Columns& columns, Range rows) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  if constexpr (Unit<kType>::kIsOrdered) {
    if (CanBeOrdered<kType>(weights.k)) return DotOrderedColumn<kType>(weights, columns, rows);
  }
#endif
  DotTogether<kType, 1>(weights, columns, 0, rows);
}

// The distance, in groups, at which weights are prefetched into a second-level cache. Processors
// don't do this by themselves, because the classes of a group are not read in the order in which
// they lie. With this a server with 16 clients was 7 % faster on Neoverse V1; prefetching one group
// ahead into a first-level cache gained nothing. What follows the last group is prefetched, but
// never read.
constexpr int64_t kGroupsAhead = 2;
TRINE_INLINE void PrefetchBytes(const uint8_t* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
}

// Unpacks the first `count` blocks of a group's chunks, the first of which is `first`. Bytes that
// are already packed in the order in which they are multiplied stay where they are.
template <Type kType>
void FillTile(const uint8_t* group, int64_t first, int count, ChunkTile* tile) {
  using P = Packed<kType>;
  constexpr bool kInPlace = P::kInPlace;
  static_assert(!kInPlace || kDotBytes == TileBytesAre::kStored || OffsetOf(P::kTraits) == 0);
  if constexpr (kInPlace) tile->class_step = P::kBlockBytes;
  for (int t = 0; t < BlocksOfClass(count, 0); ++t) {
    const int left = count - t * quant::kSuperGroups;
    const int blocks = left < quant::kSuperGroups ? left : quant::kSuperGroups;
    const uint8_t* chunk = group + (first + t) * P::ChunkBytes(quant::kSuperGroups);
    if constexpr (kInPlace) tile->bytes[t] = chunk + P::HeaderBytes(blocks);
    for (int j = 0; j < blocks; ++j) {
      if constexpr (kInPlace) {
        FillPackedScales<kType>(chunk, blocks, j, PartsOf(tile, j, t));
      } else {
        FillPackedBlock<kType>(chunk, blocks, j, kDotBytes, PartsOf(tile, j, t));
      }
    }
  }
}

template <Type kType>
void DotManyColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  const int64_t blocks = weights.k / quant::kGroupValues;
  ChunkTile tile;
  UseOwnBytes(&tile);
  TileSums sums[kMaxColumns / kCellColumns];
  for (int64_t g = rows.begin / kTileRows; g * kTileRows < rows.end; ++g) {
    const auto* group = reinterpret_cast<const uint8_t*>(weights.data + g * weights.stride);
    for (int64_t block = 0; block < blocks; block += kTileBlocks) {
      const int64_t left = blocks - block, chunk = block / quant::kSuperGroups;
      const int n = static_cast<int>(left < kTileBlocks ? left : kTileBlocks);
      FillTile<kType>(group, chunk, n, &tile);
      constexpr int64_t kChunkBytes = Packed<kType>::ChunkBytes(quant::kSuperGroups);
      PrefetchBytes(group + kGroupsAhead * weights.stride + chunk * kChunkBytes,
                    BlocksOfClass(n, 0) * kChunkBytes);
      MultiplyTile(tile, Packed<kType>::kTraits, {n, chunk, block == 0, left <= kTileBlocks},
                   columns, sums);
    }
    FinishTile(sums, weights, g * kTileRows, rows, columns);
  }
}

template <Type kType>
void Dot(const WeightRows& weights, const Columns& columns, Range rows) {
  const bool too_long = columns.paired && weights.k > kMaxUnpairedValues;
  if (too_long || GoByTiles(columns, TileMinColumns<kType>())) {
    return DotManyColumns<kType>(weights, columns, rows);
  }
  if (columns.count > 1) return DotFewColumns<kType>(weights, columns, rows);
  DotOneColumn<kType>(weights, columns, rows);
}

}  // namespace

void DotPackedColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  if (rows.begin >= rows.end) return;
  PackedTypes::Call(weights.type, [&]<Type kType>() { Dot<kType>(weights, columns, rows); });
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
