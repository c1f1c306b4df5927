// Unpacks weights for many columns: chunks of plain rows, several rows at a time, and blocks of
// packed rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/product/chunk_dot.h"
#include "kernels/cpu/product/chunk_tile.h"
#include "kernels/cpu/product/packed_format.h"
#include "kernels/cpu/simd/transpose.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

template <int N>
TRINE_INLINE U32<N / 4> AsWords(Vec<uint8_t, N> x) {
  if constexpr (U32<N / 4>::kIsNative) {
    return {(typename U32<N / 4>::Raw) x.v};
  } else {
    return {AsWords(x.lo), AsWords(x.hi)};
  }
}

// Stores chunks of eight rows into rows [row, row + 8) of the first `blocks` blocks, at parts(j).
template <FormatTraits kTraits>
TRINE_INLINE void StoreChunks(const Chunk (&chunks)[8], TileBytesAre bytes, int row, int blocks,
                              const auto& parts) {
  const int offset = bytes == TileBytesAre::kWeights ? OffsetOf(kTraits) : 0;
  for (int j = 0; j < blocks; ++j) {
    U32x8 words[8];
    for (int r = 0; r < 8; ++r) words[r] = AsWords(chunks[r].q[j] - SplatByte(offset));
    Transpose(words);
    const BlockParts to = parts(j);
    for (int i = 0; i < 8; ++i) __builtin_memcpy(&to.q[i][4 * row], &words[i], sizeof(words[i]));
    if constexpr (kPairs) OrderRows(row, row + 8, to.q);
  }
  F32x8 floats[8];  // by row; the lanes are classes
  const auto store = [&](auto part) {
    Transpose(floats);
    for (int j = 0; j < blocks; ++j) StoreRows(floats[j], row, part(parts(j)));
  };
  for (int r = 0; r < 8; ++r) floats[r] = chunks[r].d;
  store([](const BlockParts& to) { return to.d; });
  if constexpr (kTraits.minimums != Minimums::kNone) {
    for (int r = 0; r < 8; ++r) floats[r] = chunks[r].dmin;
    store([](const BlockParts& to) { return to.dmin; });
  }
  for (int h = 0; h < IntegerScales(kTraits); ++h) {
    for (int r = 0; r < 8; ++r) floats[r] = Convert<float>(chunks[r].scale[h]);
    store([h](const BlockParts& to) { return to.scale[h]; });
  }
  for (int h = 0; h < IntegerMinimums(kTraits); ++h) {
    for (int r = 0; r < 8; ++r) floats[r] = Convert<float>(chunks[r].min[h]);
    store([h](const BlockParts& to) { return to.min[h]; });
  }
}

// Unpacks the first `blocks` blocks of chunk `index` of kTileRows rows of k values, to parts(j).
template <Type kType>
TRINE_INLINE void FillPlainChunk(const std::byte* const* rows, int64_t k, TileBytesAre bytes,
                                 int64_t index, int blocks, const auto& parts) {
  for (int row = 0; row < kTileRows; row += 8) {
    Chunk chunks[8];
    for (int r = 0; r < 8; ++r) ReadChunk<kType>(rows[row + r], index, k, &chunks[r]);
    StoreChunks<Format<kType>::kTraits>(chunks, bytes, row, blocks, parts);
  }
}

// Finds where kTileRows rows from `first` on begin. Beyond `end` the last row is repeated.
TRINE_INLINE void FindRows(const WeightRows& weights, int64_t first, int64_t end,
                           const std::byte* (&rows)[kTileRows]) {
  for (int r = 0; r < kTileRows; ++r) {
    const int64_t row = first + r < end ? first + r : end - 1;
    rows[r] = weights.data + row * weights.stride;
  }
}

// Unpacks the scales of block j of a chunk of `blocks`, for every row of the group.
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

// Unpacks the values and scales of block j.
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
