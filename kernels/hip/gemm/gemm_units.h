// Multiplies a tile of 16 * kM rows by 8 * kN columns, one block of 32 values deep. Each struct
// uses another unit of the device.
//
// Dot4Unit and MmaUnit use 32 lanes; WaveUnit uses a whole wave of 32 or 64. A lane has kResults
// results of the tile; Row and Column say where in the tile result i of a lane is. Step adds the
// product of one block to the lane's results, which stay in registers from block to block. `row`
// and `column` are the indices of the tile's first row and column in the shared memory of a
// GemmStage (gemm_tile.h). A kernel whose unit is not kPresent traps.
#pragma once

#include <cstdint>

#include "kernels/hip/gemm/gemm_terms.h"
#include "kernels/hip/gpu/matrix.h"
#include "kernels/hip/gpu/wave_matrix.h"

namespace trine::hip {

// Multiplies with Dot4, which adds four products of signed bytes, in one instruction where the
// target has it. A lane has every fourth row and every eighth column.
template <Factors kFactors, int kM, int kN>
struct Dot4Unit {
  using T = Terms<kFactors>;
  static constexpr uint32_t kWave = kLanes;  // lanes that own a tile together
  static constexpr int kResults = 4 * kM * kN;
  static constexpr bool kPresent = true;

  TRINE_DEVICE static uint32_t Row(uint32_t lane, int i) {
    return lane % 4 + 4 * static_cast<uint32_t>(i / kN);
  }
  TRINE_DEVICE static uint32_t Column(uint32_t lane, int i) {
    return lane / 4 + 8 * static_cast<uint32_t>(i % kN);
  }

  TRINE_DEVICE static int32_t Dot(const Word4& a, const Word4& b, int32_t c) {
    return Dot4(a.w, b.w, Dot4(a.z, b.z, Dot4(a.y, b.y, Dot4(a.x, b.x, c))));
  }

  template <class Stage>
  TRINE_DEVICE_SHARED static void Step(const Stage& stage, uint32_t row, uint32_t column,
                                       uint32_t lane, float (&sums)[kResults]) {
    row += lane % 4;
    column += lane / 4;
    Word4 x[kN][2];
    typename T::Column columns[kN];
    TRINE_UNROLL
    for (int c = 0; c < kN; ++c) {
      x[c][0] = stage.x[0][column + 8 * c];
      x[c][1] = stage.x[1][column + 8 * c];
      columns[c] = T::Read(stage.columns[column + 8 * c]);
    }
    TRINE_UNROLL
    for (int r = 0; r < 4 * kM; ++r) {
      const Word4 low = stage.w[0][row + 4 * r], high = stage.w[1][row + 4 * r];
      const typename T::Row factors = T::Read(stage.rows[row + 4 * r]);
      TRINE_UNROLL
      for (int c = 0; c < kN; ++c) {
        const int32_t first = Dot(low, x[c][0], kDotBase);
        const int32_t dot0 = T::kHalves ? first : Dot(high, x[c][1], first);
        const int32_t dot1 = T::kHalves ? Dot(high, x[c][1], kDotBase) : 0;
        sums[r * kN + c] = T::Add(sums[r * kN + c], factors, columns[c], dot0, dot1);
      }
      KeepLoadsBehind();
    }
  }
};

#if defined(TRINE_HAS_MMA)
// Multiplies with NVIDIA's matrix units. A lane has the results of its c fragments (matrix.h).
template <Factors kFactors, int kM, int kN>
struct MmaUnit {
  using T = Terms<kFactors>;
  static constexpr uint32_t kWave = kLanes;
  static constexpr int kResults = 4 * kM * kN;
  static constexpr bool kPresent = true;
  static_assert(kN % 2 == 0);

  TRINE_DEVICE static uint32_t Row(uint32_t lane, int i) {
    return lane / 4 + 16 * static_cast<uint32_t>(i / (4 * kN)) +
           8 * static_cast<uint32_t>(i % 4 / 2);
  }
  TRINE_DEVICE static uint32_t Column(uint32_t lane, int i) {
    return lane % 4 * 2 + 8 * static_cast<uint32_t>(i / 4 % kN) + static_cast<uint32_t>(i % 2);
  }

  template <class Stage>
  TRINE_DEVICE_SHARED static void Step(const Stage& stage, uint32_t row, uint32_t column,
                                       uint32_t lane, float (&sums)[kResults]) {
    uint32_t b[kN][2];
    TRINE_UNROLL
    for (int n = 0; n < kN; n += 2) {
      uint32_t words[4];
      LoadMatrices(&stage.x[lane / 8 % 2][column + 8 * n + lane / 16 * 8 + lane % 8], words);
      b[n][0] = words[0], b[n][1] = words[1];
      b[n + 1][0] = words[2], b[n + 1][1] = words[3];
    }
    typename T::Column columns[kN][2];
    TRINE_UNROLL
    for (int n = 0; n < kN; ++n) {
      columns[n][0] = T::Read(stage.columns[column + 8 * n + lane % 4 * 2]);
      columns[n][1] = T::Read(stage.columns[column + 8 * n + lane % 4 * 2 + 1]);
    }
    TRINE_UNROLL
    for (int m = 0; m < kM; ++m) {
      uint32_t a[4];
      LoadMatrices(&stage.w[lane / 16][row + 16 * m + lane % 16], a);
      typename T::Row rows[2];
      TRINE_UNROLL
      for (int j = 0; j < 2; ++j) rows[j] = T::Read(stage.rows[row + 16 * m + 8 * j + lane / 4]);
      TRINE_UNROLL
      for (int n = 0; n < kN; ++n) {
        int32_t dot0[4] = {kDotBase, kDotBase, kDotBase, kDotBase};
        int32_t dot1[4] = {kDotBase, kDotBase, kDotBase, kDotBase};
        if constexpr (T::kHalves) {
          MmaTile16({a[0], a[1]}, b[n][0], dot0);
          MmaTile16({a[2], a[3]}, b[n][1], dot1);
        } else {
          MmaTile32(a, b[n], dot0);
        }
        TRINE_UNROLL
        for (int j = 0; j < 4; ++j) {
          float& sum = sums[(m * kN + n) * 4 + j];
          sum = T::Add(sum, rows[j / 2], columns[n][j % 2], dot0[j], dot1[j]);
        }
      }
    }
  }
};
#endif

// Multiplies with one of AMD's matrix units (wave_matrix.h). The product's columns are the unit's
// rows, so that neighbouring lanes write neighbouring results, and a lane has one row of weights,
// with the factors of that row, at a time.
template <class Matrix, Factors kFactors, int kM, int kN>
struct WaveUnit {
  using T = Terms<kFactors>;
  static constexpr uint32_t kWave = Matrix::kWave;
  static constexpr int kEach =
      Matrix::kResults;  // a lane's results of one use of the unit: 16 x 16
  static constexpr int kResults = kM * (kN / 2) * kEach;
  // A lane has registers for 64 sums. A large tile, of two parts, would need 128 in a lane of a
  // wave of 32.
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
// Gives the unit of the compiler's target one name, so that kernels have the same name on all
// targets of AMD's. If a target has no unit, the kernels trap and must not be started.
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
