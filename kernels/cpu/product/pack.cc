// Packs rows with the layout of the file into a group.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/levels/packed.h"
#include "kernels/cpu/product/chunk_dot.h"
#include "kernels/cpu/product/packed_format.h"
#include "kernels/cpu/simd/transpose.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// One chunk of a row: its blocks, with their values and scales.
template <Type kType>
struct RowChunk {
  using Block = typename Format<kType>::Block;
  static constexpr int kBlocks = Format<kType>::kBlockValues == quant::kGroupValues ? 8 : 1;
  Block blocks[kBlocks];  // zeros after the row's end
  Chunk values;

  TRINE_INLINE void Read(const std::byte* row, int64_t index, int64_t k, RowChunk* out) {
    const int64_t all = k / Format<kType>::kBlockValues, first = kBlocks * index;
    const int64_t count = all - first < kBlocks ? all - first : kBlocks;
    __builtin_memset(out->blocks, 0, sizeof(out->blocks));
    if (row == nullptr) {  // no such row
      __builtin_memset(&out->values, 0, sizeof(out->values));
      return;
    }
    __builtin_memcpy(out->blocks, row + first * static_cast<int64_t>(sizeof(Block)),
                     static_cast<size_t>(count) * sizeof(Block));
    Format<kType>::Unpack(out->blocks, &out->values);
    if constexpr (Packed<kType>::kPlanes.table != nullptr) {
      for (int b = 0; b < 8; ++b) out->values.q[b] = Format<kType>::Indices(out->blocks, b);
    }
  }
};

// The values of one block as eight vectors; each has four values of every row of the group. Types
// that lie in pairs are put in pairs at the end.
using Quads = uint8_t[8][kVectorBytes];

// Sets rows [row, row + 8) of the quads of block b.
template <Type kType>
TRINE_INLINE void SetQuads(const RowChunk<kType> (&rows)[8], int b, int row, Quads& quads) {
  U32x8 words[8];
  for (int r = 0; r < 8; ++r) {
    __builtin_memcpy(&words[r], &rows[r].values.q[b], sizeof(words[r]));
  }
  Transpose(words);
  for (int i = 0; i < 8; ++i) {
    __builtin_memcpy(&quads[i][4 * row], &words[i], sizeof(words[i]));
  }
}

template <Type kType>
void StoreBlock(const Quads& quads, uint8_t* block) {
  constexpr PackedTraits kPlanes = Packed<kType>::kPlanes;
  if constexpr (Packed<kType>::kInPlace) {
    __builtin_memcpy(block, quads, sizeof(quads));
  } else if constexpr (Packed<kType>::kInTriples) {
    for (int i = 0; i < 6; ++i) {
      const int half = i / 3, shift = 4 - 2 * (i % 3);
      for (int b = 0; b < kVectorBytes; ++b) {
        const int value = quads[4 * half + i % 3][b] ^ kTripleOffset;
        const int fourth = quads[4 * half + 3][b] ^ kTripleOffset;
        block[i * kVectorBytes + b] = static_cast<uint8_t>(value | (fourth >> shift & 3) << 6);
      }
    }
  } else {
    for (int i = 0; i < 4; ++i) {
      for (int b = 0; b < kVectorBytes; ++b) {
        const int low = quads[i][b] & 15, high = quads[i + 4][b] & 15;
        block[i * kVectorBytes + b] = static_cast<uint8_t>(low | high << 4);
      }
    }
    uint8_t* plane = block + 4 * kVectorBytes;
    if constexpr (kPlanes.high_bits != 0) {
      constexpr int kPerByte = 8 / kPlanes.high_bits;
      for (int i = 0; i < 8; ++i) {
        const int shift = i % kPerByte * kPlanes.high_bits;
        for (int b = 0; b < kVectorBytes; ++b) {
          uint8_t& to = plane[i / kPerByte * kVectorBytes + b];
          to = static_cast<uint8_t>((shift == 0 ? 0 : to) | (quads[i][b] >> 4) << shift);
        }
      }
    }
  }
}

template <Type kType>
void StoreScales(const RowChunk<kType>& from, int row, int blocks, uint8_t* chunk) {
  using P = Packed<kType>;
  constexpr Floats kFloats = P::kPlanes.floats;
  auto* halves = reinterpret_cast<uint16_t*>(chunk);
  if constexpr (kFloats == Floats::kBlockExponent) {
    for (int b = 0; b < blocks; ++b) {
      int e = from.blocks[b].e - 128;
      e = e < quant::kMxfp4MinExponent ? quant::kMxfp4MinExponent : e;
      e = e > quant::kMxfp4MaxExponent ? quant::kMxfp4MaxExponent : e;
      chunk[b * kTileRows + row] = static_cast<uint8_t>(e);
    }
  } else if constexpr (kFloats == Floats::kBlockF16 || kFloats == Floats::kBlockF16Pair) {
    for (int b = 0; b < blocks; ++b) {
      halves[b * kTileRows + row] = from.blocks[b].d;
      if constexpr (kFloats == Floats::kBlockF16Pair) {
        halves[(blocks + b) * kTileRows + row] = from.blocks[b].m;
      }
    }
  } else {
    halves[row] = from.blocks[0].d;
    if constexpr (kFloats == Floats::kChunkF16Pair) halves[kTileRows + row] = from.blocks[0].dmin;
  }
  uint8_t* bytes = chunk + P::FloatBytes(blocks);
  int32_t scale[2][8], min[8];
  if constexpr (P::kScales > 0) {
    for (int h = 0; h < P::kScales; ++h) Store(from.values.scale[h], scale[h]);
  }
  if constexpr (P::kHasMins) Store(from.values.min[0], min);
  for (int b = 0; b < blocks; ++b) {
    for (int h = 0; h < P::kScales; ++h) {
      bytes[(P::kScales * b + h) * kTileRows + row] = static_cast<uint8_t>(scale[h][b]);
    }
    if constexpr (P::kHasMins) {
      bytes[(P::kScales * blocks + b) * kTileRows + row] = static_cast<uint8_t>(min[b]);
    }
  }
}

template <Type kType>
void PackGroup(const PlainRows& rows, uint8_t* chunk) {
  using P = Packed<kType>;
  const int64_t all_blocks = rows.k / quant::kGroupValues;
  for (int64_t t = 0; t < ActivationChunks(rows.k); ++t) {
    const int64_t left = all_blocks - quant::kSuperGroups * t;
    const int blocks = static_cast<int>(left < quant::kSuperGroups ? left : quant::kSuperGroups);
    __builtin_memset(chunk, 0, static_cast<size_t>(P::HeaderBytes(blocks)));
    Quads quads[8];
    for (int row = 0; row < kTileRows; row += 8) {
      RowChunk<kType> read[8];
      for (int r = 0; r < 8; ++r) {
        const std::byte* from =
            row + r < rows.count ? rows.data + (row + r) * rows.stride : nullptr;
        RowChunk<kType>::Read(from, t, rows.k, &read[r]);
        if (from != nullptr) StoreScales<kType>(read[r], row + r, blocks, chunk);
      }
      for (int b = 0; b < blocks; ++b) SetQuads<kType>(read, b, row, quads[b]);
    }
    for (int b = 0; b < blocks; ++b) {
      if constexpr (P::kInPairs) OrderRows(0, kTileRows, quads[b]);
      StoreBlock<kType>(quads[b], chunk + P::HeaderBytes(blocks) + b * P::kBlockBytes);
    }
    chunk += P::ChunkBytes(blocks);
  }
}

}  // namespace

PackedShape ShapeOfPacked(Type type, int64_t k) {
  PackedShape shape;
  if (k > kMaxPackedValues) return shape;
  PackedTypes::Call(type, [&]<Type kType>() {
    if (k % Format<kType>::kBlockValues == 0) {
      shape = {kTileRows, Packed<kType>::GroupBytes(k)};
    }
  });
  shape.group_bytes =
      (shape.group_bytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
  return shape;
}

void Pack(const PlainRows& rows, std::byte* group) {
  PackedTypes::Call(rows.type, [&]<Type kType>() {
    PackGroup<kType>(rows, reinterpret_cast<uint8_t*>(group));
    const int64_t bytes = Packed<kType>::GroupBytes(rows.k);
    const int64_t padded = (bytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
    __builtin_memset(group + bytes, 0, static_cast<size_t>(padded - bytes));
  });
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
