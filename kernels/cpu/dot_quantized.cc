// Rows of quantised weights by columns of quantised activations.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/chunk_dot.h"
#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/finish.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// From here on unpacking into a tile pays.
constexpr int kTileMinColumns = 4;
// Columns that share the loads of a tile's weights.
constexpr int kGroupColumns = 4;

template <Type kType>
void DotRows(const WeightRows& weights, const Columns& columns, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const std::byte* row = weights.data + r * weights.stride;
    for (int c = 0; c < columns.count; ++c) {
      const float dot = ChunkDot<kType>(row, weights.k, columns.chunks[c]);
      columns.y[c][r] = Finish(dot, weights.bias, r);
    }
  }
}

constexpr FormatTraits WithoutOffset(FormatTraits traits) {
  traits.offset = 0;
  return traits;
}

// All columns by a tile that begins at their chunk `first_chunk`.
template <FormatTraits kTraits>
void MultiplyColumns(const ChunkTile& tile, int64_t first_chunk, int count, int offset,
                     const Columns& columns, TileSums* sums) {
  const ActivationChunk* x[kMaxColumns];
  for (int c = 0; c < columns.count; ++c) x[c] = columns.chunks[c] + first_chunk;
  int c = 0;
  for (; c + kGroupColumns <= columns.count; c += kGroupColumns) {
    MultiplyTile<kTraits, kGroupColumns>(tile, count, offset, x + c, sums + c);
  }
  if (c + 2 <= columns.count) {
    MultiplyTile<kTraits, 2>(tile, count, offset, x + c, sums + c);
    c += 2;
  }
  if (c < columns.count) MultiplyTile<kTraits, 1>(tile, count, offset, x + c, sums + c);
}

// Rows [first, first + count), count <= kTileRows.
template <Type kType>
void DotTile(const WeightRows& weights, const Columns& columns, int64_t first, int count) {
  const std::byte* rows[kTileRows];
  for (int r = 0; r < kTileRows; ++r) {  // lanes without a row of their own repeat the last
    rows[r] = weights.data + (first + (r < count ? r : count - 1)) * weights.stride;
  }
  ChunkTile tile;
  TileSums sums[kMaxColumns];
  __builtin_memset(sums, 0, static_cast<size_t>(columns.count) * sizeof(TileSums));
  const int64_t chunks = ActivationChunks(weights.k);
  for (int64_t chunk = 0; chunk < chunks; chunk += kTileChunks) {
    const int64_t left = chunks - chunk;
    const int n = static_cast<int>(left < kTileChunks ? left : kTileChunks);
    FillTile<kType>(rows, weights.k, chunk, n, &tile);
    constexpr FormatTraits kTraits = Format<kType>::kTraits;
    MultiplyColumns<WithoutOffset(kTraits)>(tile, chunk, n, OffsetOf(kTraits), columns, sums);
  }
  for (int c = 0; c < columns.count; ++c) {
    FinishRows(JoinClasses(sums[c]), weights.bias, first, count, columns.y[c]);
  }
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
