// Loads words from bytes at any address, and looks up small tables, for decoders of weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/hip/gpu/device.h"
#include "kernels/quant/group_words.h"

namespace trine::hip {

// Loads kBytes bytes from p, which is a multiple of kAlign. The rest of the last word is undefined.
// A device reads only aligned words that hold at least one of the bytes. So it touches no other
// page, and no access can fail.
template <int kBytes, int kAlign>
TRINE_DEVICE void LoadBytes(const std::byte* p, uint32_t (&out)[(kBytes + 3) / 4]) {
#if defined(TRINE_GPU_HOST)
  out[(kBytes - 1) / 4] = 0;
  std::memcpy(out, p, kBytes);
#else
  constexpr int kWords = (kBytes + 3) / 4;
  if constexpr (kAlign % 4 == 0) {
    TRINE_UNROLL
    for (int i = 0; i < kWords; ++i) out[i] = reinterpret_cast<const uint32_t*>(p)[i];
  } else {
    const auto off = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p) & 3u);
    const auto* words = reinterpret_cast<const uint32_t*>(p - off);
    const uint32_t last = (off + kBytes - 1) / 4;
    uint32_t at[kWords + 1];
    TRINE_UNROLL
    for (int i = 0; i <= kWords; ++i) {
      const auto index = static_cast<uint32_t>(i);
      at[i] = words[4 * i + 4 <= kBytes || index < last ? index : last];
    }
    TRINE_UNROLL
    for (int i = 0; i < kWords; ++i) {
      const uint64_t both = static_cast<uint64_t>(at[i + 1]) << 32 | at[i];
      out[i] = static_cast<uint32_t>(both >> (8 * off));
    }
  }
#endif
}

TRINE_DEVICE uint32_t LoadHalf(const std::byte* p) { return *reinterpret_cast<const uint16_t*>(p); }

// Returns byte i of two words; `low` has bytes 0 to 3.
TRINE_DEVICE uint32_t ByteOf(uint32_t low, uint32_t high, int i) {
  return (i < 4 ? low : high) >> (8 * (i & 3)) & 0xffu;
}

// Subtracts a number from each of four bytes. The number and the bytes must be below 128.
TRINE_DEVICE uint32_t Less(uint32_t bytes, uint32_t number) {
  return ((bytes | 0x80808080u) - number * 0x01010101u) ^ 0x80808080u;
}

// Returns bytes 4 * at to 4 * at + 3 of a type's table.
template <quant::NibbleTable kTable>
constexpr uint32_t TableWord(int at) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    const int8_t value = kTable == quant::NibbleTable::kIq4 ? quant::kIq4Values[4 * at + i]
                                                            : quant::kMxfp4Values[4 * at + i];
    word |= static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * i);
  }
  return word;
}

// Looks up four bytes, each below 16, in a type's table of 16 bytes.
template <quant::NibbleTable kTable>
TRINE_DEVICE uint32_t Pick16(uint32_t indices) {
  constexpr uint32_t kWords[4] = {TableWord<kTable>(0), TableWord<kTable>(1), TableWord<kTable>(2),
                                  TableWord<kTable>(3)};
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
  uint32_t selector = indices | indices >> 4;
  selector = __byte_perm(selector, 0, 0x4420);
  const uint32_t low = __byte_perm(kWords[0], kWords[1], selector & 0x7777u);
  const uint32_t high = __byte_perm(kWords[2], kWords[3], selector & 0x7777u);
  return __byte_perm(low, high, 0x3210u | (selector & 0x8888u) >> 1);
#elif defined(TRINE_GPU_AMD) && defined(__HIP_DEVICE_COMPILE__)
  const uint32_t selector = indices & 0x07070707u;
  const uint32_t low = __builtin_amdgcn_perm(kWords[1], kWords[0], selector);
  const uint32_t high = __builtin_amdgcn_perm(kWords[3], kWords[2], selector);
  const uint32_t upper = (indices >> 3 & 0x01010101u) * 0xffu;
  return (low & ~upper) | (high & upper);
#else
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t index = indices >> (8 * i) & 15u;
    out |= (kWords[index / 4] >> (8 * (index % 4)) & 0xffu) << (8 * i);
  }
  return out;
#endif
}

}  // namespace trine::hip
