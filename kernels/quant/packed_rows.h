// Packs weights in the order in which GPUs read them best (docs/vulkan-products.md). Every load is
// one aligned word, and eight neighbouring lanes, one for each class of blocks, read 128 contiguous
// bytes. Rows stay separate, and each takes as many bytes as in the file, rounded up to its
// alignment.
//
// A row of b blocks of 32 values holds, one after the other:
//   Q8_0   values: in chunks of eight blocks (the last may have fewer) the first 16 bytes of each,
//          then the second 16 bytes of each; 2 b bytes: the scales
//   Q4_0   16 b bytes: the nibbles as in the file; 2 b: the scales
//   Q4_K   16 b: nibbles, value i of a block and value i + 16 in a byte, as in Q4_0;
//          2 b: for each 256 values the 16 bytes d, dmin and scales as in the file
//   Q5_K   16 b: nibbles; 4 b: fifth bits, that of value i is bit 8 * (i % 4) + i / 4 of a word;
//          2 b: as in Q4_K
//   Q6_K   16 b: nibbles; 8 b: top bits, those of value i are bits 8 * (i % 4) + 2 * (i % 16 / 4)
//          of word i / 16; 2 b: the scales of both halves of each block; b / 4: d for each 256
//          values
// and is padded to a multiple of 16 bytes. A row of F16 is divided into runs of 256 values, each 32
// words of 16 bytes: word j has the eight values j + 32 i of the run. The values left at its end
// are padded to runs of 64, each 32 words of 4 bytes: word j has values j and j + 32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// The alignment of packed rows, and of the start of a packed matrix.
inline constexpr uint64_t kPackedAlignment = 16;

// The quantised types of those listed above.
using PackedBlockTypes = TypeList<Type::kQ8_0, Type::kQ4_0, Type::kQ4_K, Type::kQ5_K, Type::kQ6_K>;

// Returns whether the type is one of those listed above.
constexpr bool HasPackedLayout(Type type) {
  return type == Type::kF16 || PackedBlockTypes::Has(type);
}

// Computes the bytes of a packed row of k values. Returns false for a type without a packed layout,
// a k that is no whole number of blocks, and a size of 2^32 or more, which shaders can't address.
bool PackedRowBytes(Type type, int64_t k, uint64_t* bytes);

// Convert one row between the file's layout (RowBytes) and the packed layout (PackedRowBytes).
void PackRow(Type type, int64_t k, const std::byte* plain, std::byte* packed);
void UnpackRow(Type type, int64_t k, const std::byte* packed, std::byte* plain);

}  // namespace trine::quant
