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
using Int2 = int32_t __attribute__((ext_vector_type(2)));
using Int4 = int32_t __attribute__((ext_vector_type(4)));
using Int8 = int32_t __attribute__((ext_vector_type(8)));
#endif

#if defined(TRINE_HAS_WMMA_GFX11)
// RDNA 3.
struct WmmaGfx11 {
  static constexpr uint32_t kWave = 32;
  static constexpr int kResults = 8;
  TRINE_DEVICE static int Row(int lane, int i) { return 2 * i + lane / 16; }

  struct Fragment {
    Word4 half[2];
  };
  TRINE_DEVICE static Fragment Load(const Word4* low, const Word4* high, uint32_t lane) {
    return {{low[lane % 16], high[lane % 16]}};
  }
  template <int kHalf>
  TRINE_DEVICE static void AddHalf(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
#if defined(TRINE_GPU_HOST)
    const Word4 &x = a.half[kHalf], &y = b.half[kHalf];
    const uint32_t words[2][4] = {{x.x, x.y, x.z, x.w}, {y.x, y.y, y.z, y.w}};
    emulated::WaveLane mine{words[0], words[1], c};
    emulator::MeetLanes(&emulated::WaveMatrix<32, 16, 16, Row>, &mine);
#else
    const Int8 sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(
        true, __builtin_bit_cast(Int4, a.half[kHalf]), true,
        __builtin_bit_cast(Int4, b.half[kHalf]), __builtin_bit_cast(Int8, c), false);
    TRINE_UNROLL
    for (int i = 0; i < kResults; ++i) c[i] = sums[i];
#endif
  }
  TRINE_DEVICE static void Add(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    AddHalf<0>(a, b, c);
    AddHalf<1>(a, b, c);
  }
};
#endif

#if defined(TRINE_HAS_WMMA_GFX12)
// RDNA 4.
struct WmmaGfx12 {
  static constexpr uint32_t kWave = 32;
  static constexpr int kResults = 8;
  TRINE_DEVICE static int Row(int lane, int i) { return 8 * (lane / 16) + i; }

  struct Fragment {
    Word2 half[2];
  };
  TRINE_DEVICE static Fragment Load(const Word4* low, const Word4* high, uint32_t lane) {
    return {{reinterpret_cast<const Word2*>(low + lane % 16)[lane / 16],
             reinterpret_cast<const Word2*>(high + lane % 16)[lane / 16]}};
  }
  template <int kHalf>
  TRINE_DEVICE static void AddHalf(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
#if defined(TRINE_GPU_HOST)
    const uint32_t words[2][2] = {{a.half[kHalf].x, a.half[kHalf].y},
                                  {b.half[kHalf].x, b.half[kHalf].y}};
    emulated::WaveLane mine{words[0], words[1], c};
    emulator::MeetLanes(&emulated::WaveMatrix<32, 16, 8, Row>, &mine);
#else
    const Int8 sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(
        true, __builtin_bit_cast(Int2, a.half[kHalf]), true,
        __builtin_bit_cast(Int2, b.half[kHalf]), __builtin_bit_cast(Int8, c), false);
    TRINE_UNROLL
    for (int i = 0; i < kResults; ++i) c[i] = sums[i];
#endif
  }
  TRINE_DEVICE static void Add(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    AddHalf<0>(a, b, c);
    AddHalf<1>(a, b, c);
  }
};
#endif

#if defined(TRINE_HAS_MFMA_GFX90A)
// CDNA 1 and 2.
struct MfmaGfx90a {
  static constexpr uint32_t kWave = 64;
  static constexpr int kResults = 4;
  TRINE_DEVICE static int Row(int lane, int i) { return 4 * (lane / 16) + i; }

  struct Fragment {
    uint32_t half[2];
  };
  TRINE_DEVICE static Fragment Load(const Word4* low, const Word4* high, uint32_t lane) {
    return {{reinterpret_cast<const uint32_t*>(low + lane % 16)[lane / 16],
             reinterpret_cast<const uint32_t*>(high + lane % 16)[lane / 16]}};
  }
  template <int kHalf>
  TRINE_DEVICE static void AddHalf(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
#if defined(TRINE_GPU_HOST)
    emulated::WaveLane mine{&a.half[kHalf], &b.half[kHalf], c};
    emulator::MeetWave(&emulated::WaveMatrix<64, 16, 4, Row>, &mine);
#else
    const Int4 sums = __builtin_amdgcn_mfma_i32_16x16x16i8(static_cast<int32_t>(a.half[kHalf]),
                                                           static_cast<int32_t>(b.half[kHalf]),
                                                           __builtin_bit_cast(Int4, c), 0, 0, 0);
    TRINE_UNROLL
    for (int i = 0; i < kResults; ++i) c[i] = sums[i];
#endif
  }
  TRINE_DEVICE static void Add(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    AddHalf<0>(a, b, c);
    AddHalf<1>(a, b, c);
  }
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
  TRINE_DEVICE static void Add(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
#if defined(TRINE_GPU_HOST)
    const uint32_t words[2][2] = {{a.both.x, a.both.y}, {b.both.x, b.both.y}};
    emulated::WaveLane mine{words[0], words[1], c};
    emulator::MeetWave(&emulated::WaveMatrix<64, 32, 8, Row>, &mine);
#else
    const Int4 sums = __builtin_amdgcn_mfma_i32_16x16x32_i8(__builtin_bit_cast(long, a.both),
                                                            __builtin_bit_cast(long, b.both),
                                                            __builtin_bit_cast(Int4, c), 0, 0, 0);
    TRINE_UNROLL
    for (int i = 0; i < kResults; ++i) c[i] = sums[i];
#endif
  }
  template <int kHalf>
  TRINE_DEVICE static void AddHalf(const Fragment& a, const Fragment& b, int32_t (&c)[kResults]) {
    const uint32_t mask = b.half == kHalf ? 0xffffffffu : 0u;
    Add(a, {{b.both.x & mask, b.both.y & mask}, b.half}, c);
  }
};
#endif

}  // namespace trine::hip
