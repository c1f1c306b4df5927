// Computes the rms_norm of one column, in each block of a product. In a decode pass that is faster
// than a kernel for the norm, because the block's weights are loaded at the same time.
#pragma once

#include <cstdint>

#include "kernels/hip/ops/ops.h"
#include "kernels/hip/weights/quantized.h"

#ifdef TRINE_DEVICE
#include "kernels/hip/ops/norm_row.h"
#endif

namespace trine::hip {

struct ColumnNorm {
  const float* x = nullptr;  // null: no norm
  const float* weight = nullptr;
  float inverse_n = 0.0f, eps = 0.0f;
  bool constant = false;  // no kernel writes the weight
};

// The most values of a column. The number of values must be a multiple of 32.
inline constexpr int64_t kMostNormed = 4096;

// Returns whether a norm can be computed in this way. REQUIRES: x and weight begin at multiples of
// 16 bytes.
bool IsColumnNorm(const Norm& norm);
ColumnNorm ColumnNormOf(const Norm& norm);

// Returns the bytes of dynamic shared memory that a block needs for n values.
inline constexpr uint32_t ColumnNormBytes(uint32_t n) {
  const uint32_t padded = (n + 127) / 128 * 128;
  return 2 * padded * 4 + 16 + static_cast<uint32_t>(QuantizedBytes(n / 32, 1));
}

#ifdef TRINE_DEVICE
// All threads of a block must call each function.
template <uint32_t kThreads>
class ColumnNormBlock {
 public:
  // `memory`: ColumnNormBytes(n) bytes, aligned to 16.
  TRINE_DEVICE ColumnNormBlock(const ColumnNorm& norm, uint32_t n, float* memory)
      : norm_(norm), n_(n), x_(memory) {}

  // Returns the quantised column, once Make has been called.
  TRINE_DEVICE QuantizedColumns Columns() const {
    auto* values = reinterpret_cast<uint32_t*>(scale() + 4);
    auto* scales = reinterpret_cast<float*>(values + n_ / 4);
    return {values, scales, reinterpret_cast<uint32_t*>(scales + n_ / 32), n_ / 32};
  }

  // Makes the quantised column. Waits for earlier kernels before it reads what they may have
  // written.
  TRINE_DEVICE void Make() const {
    ReadAndSum();
    const QuantizedColumns to = Columns();
    ForNormed([&](uint32_t k, Float4 v) { QuantizeBlock(to, v, 0, k / 32, k / 4 % 8, k < n_); });
    SyncBlock();
  }

  // Makes the column as floats, and returns it. Waits like Make. Calls put(k, v) for values k to
  // k + 3, in all lanes of a group together; there are no such values if k is n or more.
  template <class Put>
  TRINE_DEVICE const float* MakeFloats(const Put& put) const {
    ReadAndSum();
    ForNormed([&](uint32_t k, Float4 v) {
      if (k < n_) *reinterpret_cast<Float4*>(x_ + k) = v;
      put(k, v);
    });
    SyncBlock();
    return x_;
  }

 private:
  struct Squared {
    TRINE_DEVICE float operator()(float x) const { return x * x; }
  };

  TRINE_DEVICE void ReadAndSum() const {
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
  }

  // Calls act(k, v) with the normed values k to k + 3, in all lanes of a group together. A thread
  // reads no value of another one, so act may write its own values to x.
  template <class Act>
  TRINE_DEVICE void ForNormed(const Act& act) const {
    const float by = *scale();
    for (uint32_t base = 0; base < padded(); base += 4 * kThreads) {
      const uint32_t k = base + 4 * ThreadX();
      Float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
      if (k < n_) {
        v = Canon(Times(Scaled(*reinterpret_cast<const Float4*>(x_ + k), by),
                        *reinterpret_cast<const Float4*>(weight() + k)));
      }
      act(k, v);
    }
  }

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
  float* const x_;  // followed by the weights, the scale and the column
};
#endif

}  // namespace trine::hip
