#include "kernels/reference/dot_rows.h"

#include <algorithm>

#include "kernels/quant/activation.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/dot.h"
#include "kernels/reference/math.h"
#include "kernels/reference/sums.h"

namespace trine::reference {
namespace {

using quant::kGroupValues;

// Rows that share one quantisation of the activations: enough to make its cost small, few enough
// for their partial sums to lie on the stack.
constexpr int64_t kTileRows = 32;

float Finish(float dot, const float* bias, int64_t row) {
  return bias ? Canon(Canon(dot) + bias[row]) : Canon(dot);
}

// f32, f16 and bf16 weights: one term per value, 32 classes.
float FloatDot(const WeightRows& weight, const std::byte* row, const float* x) {
  Sums32 sums;
  float w[kGroupValues];
  for (int64_t first = 0; first < weight.k; first += kGroupValues) {
    const int count = static_cast<int>(std::min<int64_t>(kGroupValues, weight.k - first));
    quant::DequantizeGroup(weight.type, row, first / kGroupValues, count, w);
    for (int i = 0; i < count; ++i) sums.Add(i, w[i] * x[first + i]);
  }
  return sums.Total();
}

// Quantised weights: one term per 32 values, 8 classes.
void QuantizedTile(const WeightRows& weight, const float* x, const float* bias, float* y,
                   Range rows) {
  quant::RowSums sums[kTileRows];
  quant::ActivationBlock activation;
  quant::Group group;
  for (int64_t b = 0; b < weight.k / kGroupValues; ++b) {
    quant::QuantizeActivation(x + b * kGroupValues, &activation);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      quant::LoadGroup(weight.type, weight.data + r * weight.stride, b, &group);
      sums[r - rows.begin].Add(b, quant::BlockTerm(group, activation));
    }
  }
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    y[r] = Finish(sums[r - rows.begin].Total(), bias, r);
  }
}

}  // namespace

void DotRows(const WeightRows& weight, const float* x, const float* bias, float* y, Range rows) {
  if (!quant::IsQuantized(weight.type)) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      y[r] = Finish(FloatDot(weight, weight.data + r * weight.stride, x), bias, r);
    }
    return;
  }
  for (int64_t begin = rows.begin; begin < rows.end; begin += kTileRows) {
    QuantizedTile(weight, x, bias, y, {begin, std::min(begin + kTileRows, rows.end)});
  }
}

}  // namespace trine::reference
