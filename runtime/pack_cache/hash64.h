// Hashes bytes to 64 bits, fast and with the same result on every machine. Detects damage, but does
// not protect from someone who changes the bytes on purpose.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trine::gguf {
class File;
}  // namespace trine::gguf

namespace trine {

// Returns the hash, which is defined as follows. There are four lanes of 64 bits; lane i begins as
// constant i + seed. The bytes are padded with zeros to a multiple of 32. Every 32 bytes are read
// as four little-endian words, one for each lane: lane = (lane ^ word) * M, then lane ^= lane >>
// 29. At the end the number of bytes and then the four lanes are mixed into one word in the same
// way; that word is the hash.
uint64_t Hash64(const void* data, uint64_t bytes, uint64_t seed);

// Returns the sum of the hashes of rows [begin, end), each seeded with its number, so that several
// threads can hash parts of a tensor.
uint64_t HashRows(const std::byte* first, uint64_t row_bytes, uint64_t begin, uint64_t end);

// Returns a number that identifies a model: a hash of the table of tensors and of some bytes of
// each tensor. Hashes only some bytes, so that a mapped file reads a few pages per tensor, however
// large it is. Does not depend on how the file is split. A model that was trained further gets
// another number.
uint64_t ModelId(const gguf::File& file);

}  // namespace trine
