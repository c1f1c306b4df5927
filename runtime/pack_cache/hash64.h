// A fast 64-bit hash of bytes, the same on every machine. It finds damage, not malice.
#ifndef TRINE_RUNTIME_PACK_CACHE_HASH64_H_
#define TRINE_RUNTIME_PACK_CACHE_HASH64_H_

#include <cstddef>
#include <cstdint>

namespace trine {

// Four 64-bit lanes begin as i-th constant + seed. Every 32 bytes, read as four little-endian words
// and the last ones filled up with zeros, go into them: lane = (lane ^ word) * M, then lane ^= lane
// >> 29. At the end the number of bytes and the lanes, in order, go into one word in the same way.
uint64_t Hash64(const void* data, uint64_t bytes, uint64_t seed);

// Of rows that several threads look at: the sum of each row's hash, seeded with its number.
uint64_t HashRows(const std::byte* first, uint64_t row_bytes, uint64_t begin, uint64_t end);

}  // namespace trine

#endif  // TRINE_RUNTIME_PACK_CACHE_HASH64_H_
