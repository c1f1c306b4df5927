// How the lanes of a wave multiply a tile of 16 kM rows by 8 kN columns with AMD's matrix units.
//
// Columns of the product are the unit's rows, so that lanes have neighbouring rows of it: a lane
// has one row of weights at a time, with its factors, and neighbours write to one place.
#ifndef TRINE_KERNELS_HIP_GEMM_WAVE_UNIT_H_
#define TRINE_KERNELS_HIP_GEMM_WAVE_UNIT_H_

#include <cstdint>

#include "kernels/hip/gemm_terms.h"
#include "kernels/hip/gemm_units.h"
#include "kernels/hip/gpu/wave_matrix.h"

namespace trine::hip {

template <class Matrix, Factors kFactors, int kM, int kN>
struct WaveUnit {
  using T = Terms<kFactors>;
  static constexpr uint32_t kWave = Matrix::kWave;
  static constexpr int kEach = Matrix::kResults;  // of 16 times 16
  static constexpr int kResults = kM * (kN / 2) * kEach;
  // 64 sums of a lane at the most: of a large tile twice as many would be a wave of 32's.
  static constexpr bool kPresent = kWave == 64 || kM <= 2;
  static_assert(kN % 2 == 0);

  TRINE_DEVICE static uint32_t Row(uint32_t lane, int i) {
    return lane % 16 + 16 * static_cast<uint32_t>(i / kEach % kM);
  }
  TRINE_DEVICE static uint32_t Column(uint32_t lane, int i) {
    return static_cast<uint32_t>(Matrix::Row(static_cast<int>(lane), i % kEach)) +
           16 * static_cast<uint32_t>(i / (kEach * kM));
  }

  template <class Stage>
  TRINE_DEVICE_SHARED static void Step(const Stage& stage, uint32_t row, uint32_t column,
                                       uint32_t lane, float (&sums)[kResults]) {
    TRINE_UNROLL
    for (int n = 0; n < kN / 2; ++n) {
      const uint32_t first = column + 16 * static_cast<uint32_t>(n);
      const auto x = Matrix::Load(&stage.x[0][first], &stage.x[1][first], lane);
      typename T::Column columns[kEach];
      TRINE_UNROLL
      for (int i = 0; i < kEach; ++i) {
        const int at = Matrix::Row(static_cast<int>(lane), i);
        columns[i] = T::Read(stage.columns[first + static_cast<uint32_t>(at)]);
      }
      TRINE_UNROLL
      for (int m = 0; m < kM; ++m) {
        const uint32_t top = row + 16 * static_cast<uint32_t>(m);
        const auto w = Matrix::Load(&stage.w[0][top], &stage.w[1][top], lane);
        const typename T::Row factors = T::Read(stage.rows[top + lane % 16]);
        int32_t dot0[kEach], dot1[kEach];
        TRINE_UNROLL
        for (int i = 0; i < kEach; ++i) dot0[i] = dot1[i] = kDotBase;
        if constexpr (T::kHalves) {
          Matrix::template AddHalf<0>(x, w, dot0);
          Matrix::template AddHalf<1>(x, w, dot1);
        } else {
          Matrix::Add(x, w, dot0);
        }
        TRINE_UNROLL
        for (int i = 0; i < kEach; ++i) {
          float& sum = sums[(n * kM + m) * kEach + i];
          sum = T::Add(sum, factors, columns[i], dot0[i], dot1[i]);
        }
        KeepLoadsBehind();
      }
    }
  }
};

#if defined(TRINE_GPU_HOST)
template <Factors kFactors, int kM, int kN>
struct WmmaUnit : WaveUnit<WmmaGfx11, kFactors, kM, kN> {};
template <Factors kFactors, int kM, int kN>
struct WmmaGfx12Unit : WaveUnit<WmmaGfx12, kFactors, kM, kN> {};
template <Factors kFactors, int kM, int kN>
struct MfmaUnit : WaveUnit<MfmaGfx90a, kFactors, kM, kN> {};
template <Factors kFactors, int kM, int kN>
struct MfmaGfx942Unit : WaveUnit<MfmaGfx942, kFactors, kM, kN> {};
#elif defined(TRINE_GPU_AMD)
// Kernels have one name for all targets: this is the unit that a target has. Where there is none,
// nobody starts them.
#if defined(TRINE_HAS_WMMA_GFX11)
template <Factors kFactors, int kM, int kN>
struct DeviceUnit : WaveUnit<WmmaGfx11, kFactors, kM, kN> {};
#elif defined(TRINE_HAS_WMMA_GFX12)
template <Factors kFactors, int kM, int kN>
struct DeviceUnit : WaveUnit<WmmaGfx12, kFactors, kM, kN> {};
#elif defined(TRINE_HAS_MFMA_GFX90A)
template <Factors kFactors, int kM, int kN>
struct DeviceUnit : WaveUnit<MfmaGfx90a, kFactors, kM, kN> {};
#elif defined(TRINE_HAS_MFMA_GFX942)
template <Factors kFactors, int kM, int kN>
struct DeviceUnit : WaveUnit<MfmaGfx942, kFactors, kM, kN> {};
#else
template <Factors kFactors, int kM, int kN>
struct DeviceUnit : Dot4Unit<kFactors, kM, kN> {
  static constexpr bool kPresent = false;
};
#endif
#endif

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMM_WAVE_UNIT_H_
