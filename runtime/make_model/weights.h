// Makes the data of a model's tensors, in pieces of bounded size and with several threads. The
// bytes depend on the tensor and the seed only.
//
// Encoding with the least error takes up to microseconds per value, too long for billions of
// values. So only some thousand blocks are encoded for a large quantised tensor, and each of the
// tensor's blocks is a random choice among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plugins/thread_team.h"
#include "runtime/make_model/tensor_list.h"

namespace trine {

// A stream of random numbers. Number i depends on the seed, the stream's name and i only, so any
// thread can make any part of a tensor, and every machine makes the same numbers.
class RandomValues {
 public:
  RandomValues(uint64_t seed, std::string_view name) : key_(Mix(seed)) {
    for (const char c : name) key_ = Mix(key_ ^ static_cast<unsigned char>(c));
  }

  // Returns 64 random bits. SplitMix64 steps by a constant, so it can be entered at any step.
  uint64_t Bits(uint64_t index) const { return Mix(key_ + (index + 1) * 0x9e3779b97f4a7c15ull); }

  // Returns a number with mean 0, deviation 1 and magnitude below 3.5: the sum of four uniform
  // numbers. That is close enough to a bell curve for a model's weights, and needs no logarithm.
  float Normal(uint64_t index) const {
    const uint64_t bits = Bits(index);
    const int32_t sum = static_cast<int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                             (bits >> 32 & 0xffff) + (bits >> 48));
    constexpr float kUnit = 2.642916e-5f;  // root of 3, divided by 2^16
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

class WeightMaker {
 public:
  // Called with the next bytes of a tensor. If it returns an error, Make returns the error.
  using Sink = std::function<absl::Status(absl::Span<const std::byte> data)>;

  // `workers` is the number of threads, the caller's included.
  WeightMaker(uint64_t seed, uint32_t workers);

  // Makes the data of a tensor. Returns INTERNAL, naming the tensor, if the tensor's type can't
  // represent its values.
  absl::Status Make(const TensorSpec& tensor, const Sink& sink);

 private:
  struct Piece;
  // Makes a tensor from random blocks of the pool, or encodes its values if the pool is empty.
  absl::Status MakeFrom(absl::Span<const std::byte> pool, const TensorSpec& tensor,
                        const Sink& sink);
  static void FillShare(void* piece, uint32_t worker, uint32_t workers);

  const uint64_t seed_;
  ThreadTeam team_;
  std::vector<std::byte> buffer_;
  std::vector<std::vector<float>> rows_;  // a buffer for each worker
};

}  // namespace trine
