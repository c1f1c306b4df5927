// The sampler's random numbers: Philox 4x32 with ten rounds, a published counter-based generator
// (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). A draw depends only on the
// seed and the number of the draw, so a sampler is rolled back by setting that number.

#pragma once

#include <array>
#include <cstdint>

namespace trine {

inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53u} * counter[0];
    const uint64_t b = uint64_t{0xcd9e8d57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9e3779b9u, key[1] + 0xbb67ae85u};
  }
  return counter;
}

// Returns 64 random bits: draw number n of a seed.
inline uint64_t RandomDraw(uint64_t seed, uint64_t n) {
  const std::array<uint32_t, 4> words =
      Philox4x32({static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 0, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{words[1]} << 32 | words[0];
}

// Returns floor(random * n / 2^64), a number below n.
inline uint64_t ScaleRandom(uint64_t random, uint64_t n) {
  const uint64_t random_low = random & 0xffffffffu, random_high = random >> 32;
  const uint64_t n_low = n & 0xffffffffu, n_high = n >> 32;
  const uint64_t low = random_low * n_low;
  const uint64_t middle = random_high * n_low + (low >> 32);
  const uint64_t other = random_low * n_high + (middle & 0xffffffffu);
  return random_high * n_high + (middle >> 32) + (other >> 32);
}

}  // namespace trine
