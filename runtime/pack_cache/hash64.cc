#include "runtime/pack_cache/hash64.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "runtime/gguf/builder.h"
#include "runtime/gguf/gguf_file.h"

namespace trine {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio, odd
// The first bits of pi's fraction.
constexpr uint64_t kStart[4] = {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0,
                                0x082efa98ec4e6c89};

inline uint64_t Mix(uint64_t lane, uint64_t word) {
  lane = (lane ^ word) * kMultiplier;
  return lane ^ lane >> 29;
}

inline void Take(const void* from, uint64_t lanes[4]) {
  uint64_t words[4];
  std::memcpy(words, from, sizeof(words));
  for (int i = 0; i < 4; ++i) lanes[i] = Mix(lanes[i], words[i]);
}

constexpr uint64_t kSample = 4096;  // bytes at each end of a tensor

}  // namespace

uint64_t Hash64(const void* data, uint64_t bytes, uint64_t seed) {
  uint64_t lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = kStart[i] + seed;
  const auto* at = static_cast<const std::byte*>(data);
  uint64_t left = bytes;
  for (; left >= 32; left -= 32, at += 32) Take(at, lanes);
  if (left > 0) {
    std::byte last[32] = {};
    std::memcpy(last, at, left);
    Take(last, lanes);
  }
  uint64_t hash = Mix(seed, bytes);
  for (const uint64_t lane : lanes) hash = Mix(hash, lane);
  return hash;
}

uint64_t HashRows(const std::byte* first, uint64_t row_bytes, uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  for (uint64_t r = begin; r < end; ++r) {
    sum += Hash64(first + (r - begin) * row_bytes, row_bytes, r);
  }
  return sum;
}

uint64_t ModelId(const gguf::File& file) {
  std::string bytes;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    gguf::AppendString(tensor.name, &bytes);
    gguf::AppendNumber(static_cast<uint64_t>(tensor.type), &bytes);
    gguf::AppendNumber(uint64_t{tensor.rank}, &bytes);
    for (uint32_t i = 0; i < tensor.rank; ++i) gguf::AppendNumber(tensor.dims[i], &bytes);
    const uint64_t n = std::min(kSample, tensor.bytes);
    gguf::AppendNumber(Hash64(tensor.data, n, 0), &bytes);
    gguf::AppendNumber(Hash64(tensor.data + (tensor.bytes - n), n, 1), &bytes);
  }
  return Hash64(bytes.data(), bytes.size(), 0);
}

}  // namespace trine
