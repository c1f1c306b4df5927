// Shared by the kernels whose warps compute one class of the contract's sums at a time: a step, one
// block of packed weights and of each column, and what a warp computes from it.
#pragma once

#include <cstdint>

#include "kernels/hip/gemm/gemm_args.h"
#include "kernels/hip/gemm/packed_forms.h"
#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/matrix.h"

#if defined(TRINE_HAS_MMA)
namespace trine::hip {

// A step in shared memory.
template <class FormOf, uint32_t kRowsOf, uint32_t kColumnsOf>
struct ClassStep {
  using Form = FormOf;
  static constexpr uint32_t kRows = kRowsOf, kColumns = kColumnsOf;
  typename Form::template Step<kRows> w;
  Word4 x[2][kColumns];  // by halves of blocks
  ColumnFactors columns[kColumns];
};

// The sums of a warp: 16 kM rows by kN groups of 8 columns. A lane has kM kN fragments of four.
template <uint32_t kM, uint32_t kN>
class WarpSums {
 public:
  // `row`: the warp's first row in a step; `column`: the first of its first group. Its next group
  // begins `stride` columns later. `groups`: those that have columns.
  TRINE_DEVICE WarpSums(uint32_t row, uint32_t column, uint32_t stride, uint32_t groups)
      : lane_(ThreadX() % kLanes), row_(row), column_(column), stride_(stride), groups_(groups) {
    Clear();
  }

  TRINE_DEVICE void Clear() {
    TRINE_UNROLL
    for (uint32_t i = 0; i < kM * kN; ++i) {
      TRINE_UNROLL
      for (uint32_t j = 0; j < 4; ++j) sums_[i][j] = 0.0f;
    }
  }

  // Adds the terms of a step's blocks.
  template <class Step>
  TRINE_DEVICE void Add(const Step& step) {
    using Form = typename Step::Form;
    uint32_t a[kM][4];
    typename Form::Row rows[kM][2];
    TRINE_UNROLL
    for (uint32_t m = 0; m < kM; ++m) {
      Form::template Fragment<Step::kRows>(step.w, row_ + 16 * m, lane_, a[m]);
      TRINE_UNROLL
      for (uint32_t j = 0; j < 2; ++j) {
        rows[m][j] = Form::Read(step.w.records[row_ + 16 * m + 8 * j + lane_ / 4]);
      }
    }
    if (groups_ == kN) {
      // Without conditions, so that the compiler mixes the work of all groups.
      TRINE_UNROLL
      for (uint32_t n = 0; n < kN; n += 2) AddGroups<2>(step, n, a, rows);
    } else {
      TRINE_UNROLL
      for (uint32_t n = 0; n < kN; ++n) {
        if (n < groups_) AddGroups<1>(step, n, a, rows);
      }
    }
  }

  // Fragment m * kN + n has, in this lane, results j = 0 to 3 of these rows and columns.
  TRINE_DEVICE uint32_t RowOf(uint32_t m, uint32_t j) const {
    return row_ + 16 * m + 8 * (j / 2) + lane_ / 4;
  }
  TRINE_DEVICE uint32_t ColumnOfResult(uint32_t n, uint32_t j) const {
    return column_ + stride_ * n + lane_ % 4 * 2 + j % 2;
  }
  TRINE_DEVICE float (&operator[](uint32_t fragment))[4] { return sums_[fragment]; }

 private:
  template <uint32_t kGroups, class Step, class Row>
  TRINE_DEVICE void AddGroups(const Step& step, uint32_t first, const uint32_t (&a)[kM][4],
                              const Row (&rows)[kM][2]) {
    using Form = typename Step::Form;
    uint32_t b[4];
    // With one group, lanes 16 to 31 read the same matrices again.
    const uint32_t group = first + (kGroups == 2 ? lane_ / 16 : 0);
    LoadMatrices(&step.x[lane_ / 8 % 2][column_ + stride_ * group + lane_ % 8], b);
    TRINE_UNROLL
    for (uint32_t g = 0; g < kGroups; ++g) {
      const uint32_t n = first + g;
      const uint32_t words[2] = {b[2 * g], b[2 * g + 1]};
      const ColumnFactors* factors = &step.columns[ColumnOfResult(n, 0)];
      const ColumnFactors columns[2] = {factors[0], factors[1]};
      TRINE_UNROLL
      for (uint32_t m = 0; m < kM; ++m) {
        int32_t dot0[4] = {kDotBase, kDotBase, kDotBase, kDotBase};
        int32_t dot1[4] = {kDotBase, kDotBase, kDotBase, kDotBase};
        if constexpr (Form::kHalves) {
          MmaTile16({a[m][0], a[m][1]}, words[0], dot0);
          MmaTile16({a[m][2], a[m][3]}, words[1], dot1);
        } else {
          MmaTile32(a[m], words, dot0);
        }
        TRINE_UNROLL
        for (uint32_t j = 0; j < 4; ++j) {
          float& sum = sums_[m * kN + n][j];
          sum = Form::Add(sum, rows[m][j / 2], columns[j % 2], dot0[j], dot1[j]);
        }
      }
    }
  }

  float sums_[kM * kN][4];
  uint32_t lane_, row_, column_, stride_, groups_;
};

}  // namespace trine::hip
#endif  // TRINE_HAS_MMA
