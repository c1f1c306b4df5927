// Test data from a seed, the same on every machine: no std distribution is.
#ifndef TRINE_PLUGINS_CONFORMANCE_RANDOM_DATA_H_
#define TRINE_PLUGINS_CONFORMANCE_RANDOM_DATA_H_

#include <cstdint>

#include "plugins/conformance/graph_spec.h"

namespace trine::conformance {

class Random {  // splitmix64
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  float Unit() { return static_cast<float>(Next() >> 40) * 0x1p-24f; }  // [0, 1)
  // Bell-shaped around 0, deviation about 1: the sum of twelve.
  float Bell();

 private:
  uint64_t state_;
};

// What activations look like. Every value is canonical, as the contract promises a kernel.
enum class Spread32 {
  kBell,  // as in a model
  kWide,  // every exponent from 2^-50 to 2^50
  kTiny,  // around the smallest magnitude
  kZeros,
  kOutliers,  // bell-shaped with a few values a thousand times larger
};
inline constexpr Spread32 kAllSpreads[] = {Spread32::kBell, Spread32::kWide, Spread32::kTiny,
                                           Spread32::kZeros, Spread32::kOutliers};

float RandomValue(Random& random, Spread32 spread);

// Rows of any weight or cache type: `bytes` holds whole blocks. Scales are finite, as the loader
// guarantees; codes take every value the format has.
void FillWeights(Random& random, uint32_t dtype, Spread32 spread, std::byte* data, size_t bytes);
// The same for values already stored in a KV cache.
void FillCache(Random& random, uint32_t dtype, std::byte* data, size_t bytes);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_RANDOM_DATA_H_
