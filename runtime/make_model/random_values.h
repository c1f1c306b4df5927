// Random numbers by index: value i of a stream is a function of the seed, the stream's name and i,
// so that any thread can make any part of a tensor, and every machine makes the same.
#ifndef TRINE_RUNTIME_MAKE_MODEL_RANDOM_VALUES_H_
#define TRINE_RUNTIME_MAKE_MODEL_RANDOM_VALUES_H_

#include <cstdint>
#include <string_view>

namespace trine {

class RandomValues {
 public:
  RandomValues(uint64_t seed, std::string_view name) : key_(Mix(seed)) {
    for (const char c : name) key_ = Mix(key_ ^ static_cast<unsigned char>(c));
  }

  // 64 random bits: the generator SplitMix64, which steps by a constant, entered at any step.
  uint64_t Bits(uint64_t index) const { return Mix(key_ + (index + 1) * 0x9e3779b97f4a7c15ull); }

  // Mean 0, deviation 1, magnitude below 3.5: the sum of four uniform numbers, which is a bell
  // curve for all that a model's weights need, and takes no logarithm.
  float Normal(uint64_t index) const {
    const uint64_t bits = Bits(index);
    const int32_t sum = static_cast<int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                             (bits >> 32 & 0xffff) + (bits >> 48));
    constexpr float kUnit = 2.642916e-5f;  // root of 3, over 2^16
    return static_cast<float>(sum - 2 * 0xffff) * kUnit;
  }

 private:
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  uint64_t key_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_RANDOM_VALUES_H_
