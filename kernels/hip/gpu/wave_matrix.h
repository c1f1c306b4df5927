// Multiplies matrices with AMD's integer matrix units, which use all lanes of a wave together.
//
// Each unit multiplies 16 rows of a by 16 columns of b, which are signed bytes. Each has its own
// order of these bytes in the lanes' registers (AMD's instruction set manuals, and its matrix
// instruction calculator). With g = lane / 16 and s = lane % 16:
//
//                 lanes  depth  a: row s, b: column s   c[i]: column s, row
//   WmmaGfx11        32     16  bytes 0 to 15           2 i + g
//   WmmaGfx12        32     16  bytes 8 g to 8 g + 7    8 g + i
//   MfmaGfx90a       64     16  bytes 4 g to 4 g + 3    4 g + i
//   MfmaGfx942       64     32  bytes 8 g to 8 g + 7    4 g + i
//
// Add multiplies a block of 32 values, and AddHalf only a half of it. Load makes the fragments from
// the two halves of a row or a column.
#pragma once

#include <cstdint>

#include "kernels/hip/gpu/device.h"

// The unit of the compiler's target, if it has one; backends/hip/found_devices.cc must agree. The
// emulator has all units.
#if defined(TRINE_GPU_HOST)
#define TRINE_HAS_WMMA_GFX11 1
#define TRINE_HAS_WMMA_GFX12 1
#define TRINE_HAS_MFMA_GFX90A 1
#define TRINE_HAS_MFMA_GFX942 1
#elif defined(TRINE_GPU_AMD)
#if defined(__GFX11__)
#define TRINE_HAS_WMMA_GFX11 1
#elif defined(__gfx1200__) || defined(__gfx1201__)
#define TRINE_HAS_WMMA_GFX12 1
#elif defined(__gfx908__) || defined(__gfx90a__)
#define TRINE_HAS_MFMA_GFX90A 1
#elif defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define TRINE_HAS_MFMA_GFX942 1
#endif
#endif

namespace trine::hip {

#if defined(TRINE_GPU_HOST)
namespace emulated {

struct WaveLane {
  const uint32_t* a;
  const uint32_t* b;
  int32_t* c;
};

// Emulates a unit. kGiven: the bytes of a and of b that each lane gives, its part of the depth. If
// each lane gives the whole depth, lane 16 and later lanes must repeat what the first 16 give.
template <int kWave, int kDepth, int kGiven, int (*kRowOfResult)(int, int)>
const char* WaveMatrix(void** lanes) {
  const auto byte = [](const uint32_t* words, int i) -> int8_t {
    return static_cast<int8_t>(words[i / 4] >> (8 * (i % 4)));
  };
  int8_t a[16][kDepth], b[16][kDepth];
  for (int lane = 0; lane < kWave; ++lane) {
    const auto* from = static_cast<const WaveLane*>(lanes[lane]);
    const bool again = kGiven * (lane / 16) >= kDepth;
    for (int i = 0; i < kGiven; ++i) {
      const int at = (kGiven * (lane / 16) + i) % kDepth;
      const int8_t given[2] = {byte(from->a, i), byte(from->b, i)};
      if (again && (given[0] != a[lane % 16][at] || given[1] != b[lane % 16][at])) {
        return "the halves of a wave give a matrix unit different values";
      }
      a[lane % 16][at] = given[0];
      b[lane % 16][at] = given[1];
    }
  }
  constexpr int kResults = 256 / kWave;
  for (int lane = 0; lane < kWave; ++lane) {
    for (int i = 0; i < kResults; ++i) {
      const int8_t *row = a[kRowOfResult(lane, i)], *column = b[lane % 16];
      int32_t sum = 0;
      for (int at = 0; at < kDepth; ++at) sum += row[at] * column[at];
      static_cast<const WaveLane*>(lanes[lane])->c[i] += sum;
    }
  }
  return nullptr;
}

}  // namespace emulated
#else
template <int kCount>
using Ints = int32_t __attribute__((ext_vector_type(kCount)));
#endif

// Adds the products of one use of a unit, kDepth deep, to which this lane gives `a` and `b`.
template <class Unit, int kDepth, class Bytes, int kResults>
TRINE_DEVICE void AddProducts(const Bytes& a, const Bytes& b, int32_t (&c)[kResults]) {
#if defined(TRINE_GPU_HOST)
  uint32_t words[2][sizeof(Bytes) / 4];
  __builtin_memcpy(words[0], &a, sizeof(Bytes));
  __builtin_memcpy(words[1], &b, sizeof(Bytes));
  emulated::WaveLane mine{words[0], words[1], c};
  constexpr auto kMeeting = &emulated::WaveMatrix<Unit::kWave, kDepth, sizeof(Bytes), Unit::Row>;
  if constexpr (Unit::kWave == 64) {
    emulator::MeetWave(kMeeting, &mine);
  } else {
    emulator::MeetLanes(kMeeting, &mine);
  }
#else
  const auto sums = Unit::Sums(a, b, __builtin_bit_cast(Ints<kResults>, c));
  TRINE_UNROLL
  for (int i = 0; i < kResults; ++i) c[i] = sums[i];
#endif
}

// The units that are 16 deep. A lane gives `Bytes` of each half of a block.
template <class Unit, class Bytes>
struct HalvesUnit {
  struct Fragment {
    Bytes half[2];
  };
  TRINE_DEVICE static Fragment Load(const Word4* low, const Word4* high, uint32_t lane) {
    const uint32_t at = sizeof(Bytes) == sizeof(Word4) ? 0 : lane / 16;
    return {{reinterpret_cast<const Bytes*>(low + lane % 16)[at],
             reinterpret_cast<const Bytes*>(high + lane % 16)[at]}};
  }
  template <int kHalf, int kResults>
  TRINE_DEVICE static void AddHalf(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    AddProducts<Unit, 16>(a.half[kHalf], b.half[kHalf], c);
  }
  template <int kResults>
  TRINE_DEVICE static void Add(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    AddHalf<0>(a, b, c);
    AddHalf<1>(a, b, c);
  }
};

#if defined(TRINE_HAS_WMMA_GFX11)
// RDNA 3.
struct WmmaGfx11 : HalvesUnit<WmmaGfx11, Word4> {
  static constexpr uint32_t kWave = 32;
  static constexpr int kResults = 8;
  TRINE_DEVICE static int Row(int lane, int i) { return 2 * i + lane / 16; }
#if !defined(TRINE_GPU_HOST)
  TRINE_DEVICE static Ints<8> Sums(const Word4& a, const Word4& b, Ints<8> c) {
    return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, __builtin_bit_cast(Ints<4>, a), true,
                                                      __builtin_bit_cast(Ints<4>, b), c, false);
  }
#endif
};
#endif

#if defined(TRINE_HAS_WMMA_GFX12)
// RDNA 4.
struct WmmaGfx12 : HalvesUnit<WmmaGfx12, Word2> {
  static constexpr uint32_t kWave = 32;
  static constexpr int kResults = 8;
  TRINE_DEVICE static int Row(int lane, int i) { return 8 * (lane / 16) + i; }
#if !defined(TRINE_GPU_HOST)
  TRINE_DEVICE static Ints<8> Sums(const Word2& a, const Word2& b, Ints<8> c) {
    return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(
        true, __builtin_bit_cast(Ints<2>, a), true, __builtin_bit_cast(Ints<2>, b), c, false);
  }
#endif
};
#endif

#if defined(TRINE_HAS_MFMA_GFX90A)
// CDNA 1 and 2.
struct MfmaGfx90a : HalvesUnit<MfmaGfx90a, uint32_t> {
  static constexpr uint32_t kWave = 64;
  static constexpr int kResults = 4;
  TRINE_DEVICE static int Row(int lane, int i) { return 4 * (lane / 16) + i; }
#if !defined(TRINE_GPU_HOST)
  TRINE_DEVICE static Ints<4> Sums(uint32_t a, uint32_t b, Ints<4> c) {
    return __builtin_amdgcn_mfma_i32_16x16x16i8(static_cast<int32_t>(a), static_cast<int32_t>(b), c,
                                                0, 0, 0);
  }
#endif
};
#endif

#if defined(TRINE_HAS_MFMA_GFX942)
// CDNA 3 has no instruction that is 16 deep. The lanes of each half of a wave have one half of a
// block. So AddHalf puts zeros in place of the other half.
struct MfmaGfx942 {
  static constexpr uint32_t kWave = 64;
  static constexpr int kResults = 4;
  TRINE_DEVICE static int Row(int lane, int i) { return 4 * (lane / 16) + i; }

  struct Fragment {
    Word2 both;
    uint32_t half;  // the half that this lane has
  };
  TRINE_DEVICE static Fragment Load(const Word4* low, const Word4* high, uint32_t lane) {
    const Word4* row = (lane < 32 ? low : high) + lane % 16;
    return {reinterpret_cast<const Word2*>(row)[lane / 16 % 2], lane / 32};
  }
#if !defined(TRINE_GPU_HOST)
  TRINE_DEVICE static Ints<4> Sums(const Word2& a, const Word2& b, Ints<4> c) {
    return __builtin_amdgcn_mfma_i32_16x16x32_i8(__builtin_bit_cast(long, a),
                                                 __builtin_bit_cast(long, b), c, 0, 0, 0);
  }
#endif
  TRINE_DEVICE static void Add(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    AddProducts<MfmaGfx942, 32>(a.both, b.both, c);
  }
  template <int kHalf>
  TRINE_DEVICE static void AddHalf(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    const uint32_t mask = b.half == kHalf ? 0xffffffffu : 0u;
    Add(a, {{b.both.x & mask, b.both.y & mask}, b.half}, c);
  }
};
#endif

}  // namespace trine::hip
