// Multiplies small matrices of signed bytes with the 32 lanes of a group, as NVIDIA's units do.
//
// Fragments are NVIDIA's of mma.m16n8k16 and m16n8k32 with signed bytes (PTX ISA, "Matrix Fragments
// for mma"). With g = lane / 4 and t = lane % 4, word w of a row being its bytes 4 w to 4 w + 3:
//   a   rows g and g + 8, word t; then the same rows, word t + 4
//   b   column g, word t; then word t + 4
//   c   row g, columns 2 t and 2 t + 1; then row g + 8
#pragma once

#include <cstdint>

#include "kernels/hip/gpu/device.h"

// Defined if the compiler's target has these units; the emulator has all units.
#if defined(TRINE_GPU_HOST) || defined(TRINE_GPU_NVIDIA)
#define TRINE_HAS_MMA 1
#endif

#if defined(TRINE_HAS_MMA)
namespace trine::hip {

// Loads four matrices of 8 rows of 16 bytes. Lane i passes the address of row i % 8 of matrix i /
// 8, and gets word i % 4 of row i / 4 of each matrix.
TRINE_DEVICE void LoadMatrices(const Word4* row, uint32_t (&out)[4]) {
#if defined(TRINE_GPU_HOST)
  struct Lane {
    const Word4* row;
    uint32_t* out;
  } mine{row, out};
  emulator::MeetLanes(
      [](void** lanes) -> const char* {
        for (int i = 0; i < kLanes; ++i) {
          for (int m = 0; m < 4; ++m) {
            const Word4& from = *static_cast<Lane*>(lanes[8 * m + i / 4])->row;
            const uint32_t words[4] = {from.x, from.y, from.z, from.w};
            static_cast<Lane*>(lanes[i])->out[m] = words[i % 4];
          }
        }
        return nullptr;
      },
      &mine);
#else
  const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(from)
               : "memory");
#endif
}

#if defined(TRINE_GPU_HOST)
namespace emulated {

struct MmaLane {
  const uint32_t* a;
  const uint32_t* b;
  int32_t* c;
};

// Multiplies 16 * kHalves deep.
template <int kHalves>
const char* Mma(void** lanes) {
  const auto byte = [](uint32_t word, int i) -> int32_t {
    return static_cast<int8_t>(word >> (8 * i));
  };
  int8_t a[16][32], b[8][32];
  for (int i = 0; i < kLanes; ++i) {
    const auto* lane = static_cast<const MmaLane*>(lanes[i]);
    const int g = i / 4, t = i % 4;
    for (int h = 0; h < kHalves; ++h) {
      for (int j = 0; j < 4; ++j) {
        const int at = 16 * h + 4 * t + j;
        a[g][at] = static_cast<int8_t>(byte(lane->a[2 * h], j));
        a[g + 8][at] = static_cast<int8_t>(byte(lane->a[2 * h + 1], j));
        b[g][at] = static_cast<int8_t>(byte(lane->b[h], j));
      }
    }
  }
  for (int i = 0; i < kLanes; ++i) {
    const auto* lane = static_cast<const MmaLane*>(lanes[i]);
    for (int j = 0; j < 4; ++j) {
      const int8_t* row = a[i / 4 + 8 * (j / 2)];
      const int8_t* column = b[2 * (i % 4) + j % 2];
      int32_t sum = 0;
      for (int at = 0; at < 16 * kHalves; ++at) sum += row[at] * column[at];
      lane->c[j] += sum;
    }
  }
  return nullptr;
}

}  // namespace emulated
#endif

// Computes c += a * b: 16 rows by 8 columns, 32 deep.
TRINE_DEVICE void MmaTile32(const uint32_t (&a)[4], const uint32_t (&b)[2], int32_t (&c)[4]) {
#if defined(TRINE_GPU_HOST)
  emulated::MmaLane mine{a, b, c};
  emulator::MeetLanes(&emulated::Mma<2>, &mine);
#else
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Computes c += a * b: 16 rows by 8 columns, 16 deep. a and b are halves of MmaTile32's fragments.
TRINE_DEVICE void MmaTile16(const uint32_t (&a)[2], uint32_t b, int32_t (&c)[4]) {
#if defined(TRINE_GPU_HOST)
  emulated::MmaLane mine{a, &b, c};
  emulator::MeetLanes(&emulated::Mma<1>, &mine);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
#endif
}

}  // namespace trine::hip
#endif  // TRINE_HAS_MMA
