// The rms_norm of one column, quantised, as each block of a product makes it for itself: in a
// decoded token that takes less time than a kernel of its own, and the block's weights are on their
// way meanwhile.
#ifndef TRINE_KERNELS_HIP_COLUMN_NORM_H_
#define TRINE_KERNELS_HIP_COLUMN_NORM_H_

#include <cstdint>

#include "kernels/hip/norm.h"
#include "kernels/hip/quantized.h"

#ifdef TRINE_DEVICE
#include "kernels/hip/norm_row.h"
#endif

namespace trine::hip {

struct ColumnNorm {
  const float* x = nullptr;  // null: none
  const float* weight = nullptr;
  float inverse_n = 0.0f, eps = 0.0f;
  bool constant = false;  // the weight
};

// Values of a column at the most, a multiple of 32.
inline constexpr int64_t kMostNormed = 4096;

// Whether a norm is one: x and weight begin at multiples of 16 bytes.
bool IsColumnNorm(const Norm& norm);
ColumnNorm ColumnNormOf(const Norm& norm);

// Of a block's dynamic shared memory, for n values.
inline constexpr uint32_t ColumnNormBytes(uint32_t n) {
  const uint32_t padded = (n + 127) / 128 * 128;
  return 2 * padded * 4 + 16 + static_cast<uint32_t>(QuantizedBytes(n / 32, 1));
}

#ifdef TRINE_DEVICE
// All threads of a block call each of its functions.
template <uint32_t kThreads>
class ColumnNormBlock {
 public:
  // `memory`: ColumnNormBytes, aligned to 16 bytes.
  TRINE_DEVICE ColumnNormBlock(const ColumnNorm& norm, uint32_t n, float* memory)
      : norm_(norm), n_(n), x_(memory) {}

  // The column, once Make has been called.
  TRINE_DEVICE QuantizedColumns Columns() const {
    auto* values = reinterpret_cast<uint32_t*>(scale() + 4);
    auto* scales = reinterpret_cast<float*>(values + n_ / 4);
    return {values, scales, reinterpret_cast<uint32_t*>(scales + n_ / 32), n_ / 32};
  }

  // Waits for earlier kernels before it reads what they may have written.
  TRINE_DEVICE void Make() const {
    if (!norm_.constant) AwaitEarlier();
    ForWords(n_, [&](uint32_t k) { Put(norm_.weight + k, weight() + k); });
    AwaitEarlier();
    ForWords(padded(), [&](uint32_t k) {
      if (k < n_) {
        Put(norm_.x + k, x_ + k);
      } else {
        *reinterpret_cast<Float4*>(x_ + k) = Float4{0.0f, 0.0f, 0.0f, 0.0f};
      }
    });
    SyncBlock();
    if (ThreadX() < kLanes) {
      const float squares =
          JoinClasses(AddTerms<16>(0.0f, x_, ThreadX(), padded() / kLanes, Squared{}));
      if (ThreadX() == 0) *scale() = Rsqrt(squares * norm_.inverse_n + norm_.eps);
    }
    SyncBlock();
    const QuantizedColumns to = Columns();
    const float by = *scale();
    for (uint32_t base = 0; base < padded(); base += 4 * kThreads) {
      const uint32_t k = base + 4 * ThreadX(), at = k < n_ ? k : 0;
      const Float4 v = Canon(Times(Scaled(*reinterpret_cast<const Float4*>(x_ + at), by),
                                   *reinterpret_cast<const Float4*>(weight() + at)));
      QuantizeBlock(to, v, 0, k / 32, k / 4 % 8, k < n_);
    }
    SyncBlock();
  }

 private:
  struct Squared {
    TRINE_DEVICE float operator()(float x) const { return x * x; }
  };

  template <class Do>
  TRINE_DEVICE static void ForWords(uint32_t n, const Do& act) {
    for (uint32_t k = 4 * ThreadX(); k < n; k += 4 * kThreads) act(k);
  }
  TRINE_DEVICE static void Put(const float* from, float* to) {
    *reinterpret_cast<Float4*>(to) = *reinterpret_cast<const Float4*>(from);
  }

  TRINE_DEVICE uint32_t padded() const { return (n_ + 127) / 128 * 128; }
  TRINE_DEVICE float* weight() const { return x_ + padded(); }
  TRINE_DEVICE float* scale() const { return weight() + padded(); }

  const ColumnNorm& norm_;
  const uint32_t n_;
  float* const x_;  // then the weights, the scale, and the column
};
#endif

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_COLUMN_NORM_H_
