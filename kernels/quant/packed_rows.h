// Weights as GPUs read them best (docs/vulkan-products.md): every load is of an aligned
// word, and eight neighbouring lanes, one for each class of blocks, read 128 bytes that lie
// together. A row stays a row and takes as many bytes as in the file, up to its alignment.
//
// A row of b blocks of 32 values holds, one after the other:
//   Q8_0   values: in chunks of eight blocks (the last may have fewer) the first 16 bytes of each,
//          then the second 16 bytes of each; 2 b bytes: the scales
//   Q4_0   16 b bytes: the nibbles as in the file; 2 b: the scales
//   Q4_K   16 b: nibbles, value i of a block and value i + 16 in a byte, as Q4_0 has them;
//          2 b: of each 256 values the 16 bytes d, dmin and scales as in the file
//   Q5_K   16 b: nibbles; 4 b: fifth bits, that of value i is bit 8 * (i % 4) + i / 4 of a word;
//          2 b: as Q4_K
//   Q6_K   16 b: nibbles; 8 b: top bits, those of value i are bits 8 * (i % 4) + 2 * (i % 16 / 4)
//          of word i / 16; 2 b: the scales of both halves of each block; b / 4: of each 256 values
//          d
// and is filled up to a multiple of 16 bytes. A row of F16 is cut into runs of 256 values, each 32
// words of 16 bytes: word j has the eight values j + 32 i of the run. What is left at its end is
// filled up to runs of 64 values, each 32 words of 4 bytes: word j has values j and j + 32.
#ifndef TRINE_KERNELS_QUANT_PACKED_ROWS_H_
#define TRINE_KERNELS_QUANT_PACKED_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// Of the rows, and what a packed matrix must begin at a multiple of.
inline constexpr uint64_t kPackedAlignment = 16;

bool HasPackedLayout(Type type);

// Bytes of a packed row of k values. False for a type without a packed layout, for a k that is no
// whole number of blocks, and for a size beyond what shaders address (2^32).
bool PackedRowBytes(Type type, int64_t k, uint64_t* bytes);

// One row, from the file's form to the packed one and back. Both sizes are as above and as
// quant::RowBytes says.
void PackRow(Type type, int64_t k, const std::byte* plain, std::byte* packed);
void UnpackRow(Type type, int64_t k, const std::byte* packed, std::byte* plain);

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_PACKED_ROWS_H_
