// Makes the data of a model's tensors, in pieces of at most 16 MiB (but at least a row) and with
// several threads. The bytes depend on the tensor and the seed, not on the number of threads.
//
// Encoding with the least error takes up to microseconds per value, too long for billions of
// values. So only 131,072 values of a large quantised tensor are encoded, and the tensor is filled
// with copies of their blocks, chosen at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plugins/own_team.h"
#include "runtime/make_model/tensor_list.h"

namespace trine {

// A stream of random numbers. Number i depends on the seed, the stream's name and i only, so any
// thread can make any part of a tensor, and every machine makes the same numbers.
class RandomValues {
 public:
  RandomValues(uint64_t seed, std::string_view name) : key_(Mix(seed)) {
    for (const char c : name) key_ = Mix(key_ ^ static_cast<unsigned char>(c));
  }

  // Returns number `index` of the stream: 64 random bits. SplitMix64 adds a constant at each step,
  // so any number can be computed directly.
  uint64_t Bits(uint64_t index) const { return Mix(key_ + (index + 1) * 0x9e3779b97f4a7c15ull); }

  // Returns a number with mean 0, standard deviation 1 and magnitude below 3.5: the scaled sum of
  // four uniform numbers. The sum is close enough to a normal distribution for a model's weights,
  // and needs no logarithm.
  float Normal(uint64_t index) const {
    const uint64_t bits = Bits(index);
    const int32_t sum = static_cast<int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                             (bits >> 32 & 0xffff) + (bits >> 48));
    constexpr float kUnit = 2.642916e-5f;  // the square root of 3, divided by 2^16
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

// Makes the tensors of one model. Not thread-safe.
class WeightMaker {
 public:
  // Takes the next bytes of a tensor, in order, on the thread that called Make. The bytes are valid
  // during the call only. An error ends Make, which returns the error.
  using Sink = std::function<absl::Status(absl::Span<const std::byte> data)>;

  // `workers` is the most threads that are used, the caller's included.
  WeightMaker(uint64_t seed, uint32_t workers);

  // Makes the data of a tensor. Returns INTERNAL, naming the tensor, if a row is no whole number of
  // the type's blocks or a value can't be encoded. Returns an error of the sink or of the threads.
  absl::Status Make(const TensorSpec& tensor, const Sink& sink);

 private:
  struct Piece;
  // Makes a tensor from random blocks of the pool, or encodes the tensor's values if the pool is
  // empty.
  absl::Status MakeFrom(absl::Span<const std::byte> pool, const TensorSpec& tensor,
                        const Sink& sink);
  static void FillShare(void* piece, uint32_t worker, uint32_t workers);

  const uint64_t seed_;
  OwnTeam team_;
  std::vector<std::byte> buffer_;         // the bytes of the current piece
  std::vector<std::vector<float>> rows_;  // a row of values for each worker
};

}  // namespace trine
