// Shared by the kernels of norms: reading, summing and writing a row. Each value of an operand is
// read and written by one thread, so y and sum may share the memory of x or of addend.
#pragma once

#include <cstdint>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/ops/lane_results.h"
#include "kernels/hip/ops/row_index.h"
#include "kernels/hip/weights/quantized.h"
#include "kernels/hip/weights/tensor.h"

namespace trine::hip {

struct NormArgs {
  Rows x, addend, sum, y;  // all but x may have no data
  const float* weight;     // or null
  const float* bias;       // or null
  QuantizedColumns to;
  int64_t rows, n1, n2;
  uint32_t n;
  float inverse_n, eps;
  bool centred;
  bool constant;  // no kernel writes weight and bias
};

// Return the launch for rows of different lengths. `wide`: rows are whole vectors of four values,
// and begin at multiples of their size.
Launch ShortNormLaunch(const NormArgs& args);            // n up to kMostShort, not quantised
Launch LongNormLaunch(const NormArgs& args, bool wide);  // any n
inline constexpr uint32_t kMostShort = 256;

// The places of one row.
struct NormRow {
  const float* x;
  const float* addend;  // or null
  float* sum;           // or null
  float* y;             // or null
};

TRINE_DEVICE NormRow NormRowAt(const NormArgs& args, int64_t row) {
  const RowIndex index = IndexOfRow(row, args.n1, args.n2);
  return {RowAt<const float>(args.x, index),
          args.addend.data != nullptr ? RowAt<const float>(args.addend, index) : nullptr,
          args.sum.data != nullptr ? RowAt<float>(args.sum, index) : nullptr,
          args.y.data != nullptr ? RowAt<float>(args.y, index) : nullptr};
}

// Returns values k to k + 3 of n; +0 after the end.
template <bool kWide>
TRINE_DEVICE Float4 ReadFour(const float* from, uint32_t k, uint32_t n) {
  if constexpr (kWide) {
    return k < n ? *reinterpret_cast<const Float4*>(from + k) : Float4{0.0f, 0.0f, 0.0f, 0.0f};
  } else {
    return {k < n ? from[k] : 0.0f, k + 1 < n ? from[k + 1] : 0.0f, k + 2 < n ? from[k + 2] : 0.0f,
            k + 3 < n ? from[k + 3] : 0.0f};
  }
}

template <bool kWide>
TRINE_DEVICE void WriteFour(Float4 v, float* to, uint32_t k, uint32_t n) {
  if constexpr (kWide) {
    if (k < n) *reinterpret_cast<Float4*>(to + k) = v;
  } else {
    if (k < n) to[k] = v.x;
    if (k + 1 < n) to[k + 1] = v.y;
    if (k + 2 < n) to[k + 2] = v.z;
    if (k + 3 < n) to[k + 3] = v.w;
  }
}

TRINE_DEVICE Float4 Scaled(Float4 v, float by) { return {v.x * by, v.y * by, v.z * by, v.w * by}; }
TRINE_DEVICE Float4 Times(Float4 a, Float4 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
TRINE_DEVICE Float4 Sum(Float4 a, Float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
TRINE_DEVICE Float4 Canon(Float4 v) {
  return {quant::Canon(v.x), quant::Canon(v.y), quant::Canon(v.z), quant::Canon(v.w)};
}

// Subtracts the mean, and makes values after the end +0. layer_norm squares the results, so they go
// through Canon first: the difference of two close values may be 2^-73.
TRINE_DEVICE Float4 Centre(Float4 v, float mean, uint32_t k, uint32_t n) {
  v = Canon(Float4{v.x - mean, v.y - mean, v.z - mean, v.w - mean});
  return {k < n ? v.x : 0.0f, k + 1 < n ? v.y : 0.0f, k + 2 < n ? v.z : 0.0f,
          k + 3 < n ? v.w : 0.0f};
}

struct Itself {
  TRINE_DEVICE float operator()(float x) const { return x; }
};

// Adds the next 32 * count terms to the sums of 32 classes, of which this lane has class `lane`.
// `count` is a multiple of four; terms after the row's end are +0, which changes no sum. Each
// addition waits for the one before, so the next terms are loaded before these are added.
template <uint32_t kBatch, class Term = Itself>
TRINE_DEVICE float AddTerms(float class_sum, const float* terms, uint32_t lane, uint32_t count,
                            const Term& term = {}) {
  const auto load = [&](uint32_t first, float(&batch)[kBatch]) {
    TRINE_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) batch[i] = terms[(first + i) * kLanes + lane];
  };
  const auto add = [&](const float(&batch)[kBatch]) {
    TRINE_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) class_sum = class_sum + term(batch[i]);
  };
  uint32_t at = 0;
  if (count >= kBatch) {
    float now[kBatch], next[kBatch];
    load(0, now);
    for (; at + 2 * kBatch <= count; at += kBatch) {
      load(at + kBatch, next);
      add(now);
      TRINE_UNROLL
      for (uint32_t i = 0; i < kBatch; ++i) now[i] = next[i];
    }
    add(now);
    at += kBatch;
  }
  for (; at < count; at += 4) {
    const float* four = terms + at * kLanes + lane;
    const float a = four[0], b = four[kLanes], c = four[2 * kLanes], d = four[3 * kLanes];
    class_sum = (((class_sum + term(a)) + term(b)) + term(c)) + term(d);
  }
  return class_sum;
}
// Returns the `count` of AddTerms for n values.
TRINE_DEVICE uint32_t TermsOf(uint32_t n) { return (n + 4 * kLanes - 1) / (4 * kLanes) * 4; }

// Return the mean from a row's sum, and the scale from the sum of its squares.
TRINE_DEVICE float MeanOf(float sum, const NormArgs& args) { return Canon(sum * args.inverse_n); }
TRINE_DEVICE float ScaleOf(float squares, const NormArgs& args) {
  return Rsqrt(squares * args.inverse_n + args.eps);
}

}  // namespace trine::hip
