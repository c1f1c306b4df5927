#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/quant/activation.h"
#include "kernels/quant/block_types.h"
#include "kernels/quant/dequantize.h"
#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

using quant::kGroupValues;

struct WeightRows {
  quant::Type type;
  const std::byte* data;  // row 0
  int64_t stride;         // bytes from row to row
  int64_t k;              // values in a row
};

// The number of rows that share one quantisation of the activations: enough to make its cost small,
// few enough for their partial sums to lie on the stack.
constexpr int64_t kTileRows = 32;

float Finish(float dot, const float* bias, int64_t row) {
  return bias ? Canon(Canon(dot) + bias[row]) : Canon(dot);
}

// Returns the dot product of a row of f32, f16 or bf16: one term per value, 32 classes.
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

// Computes up to kTileRows rows of quantised weights: one term per 32 values, 8 classes.
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

// Sets y[r] = canon(dot(row r, x)), or canon(canon(dot) + bias[r]) with a bias, for r in `rows`.
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

}  // namespace

void Matmul(const View& w, const View& x, const View* bias, const View& dst, Range features) {
  const WeightRows weight = {w.type, w.data, w.strides[1], w.dims[0]};
  const float* b = bias ? F32Row(*bias, 0) : nullptr;
  for (int64_t column = 0; column < Rows(x); ++column) {
    DotRows(weight, F32Row(x, column), b, F32Row(dst, column), features);
  }
}

void MoeMatmul(const View& w, const View& x, const View& ids, const View* bias, const View& dst,
               Range features) {
  for (int64_t row = 0; row < Rows(dst); ++row) {
    const int64_t slot = row % dst.dims[1];
    const int64_t token = row / dst.dims[1];
    const int32_t expert = I32Row(ids, token)[slot];
    float* y = F32Row(dst, row);
    if (expert < 0 || expert >= w.dims[2]) {
      std::fill(y + features.begin, y + features.end, 0.0f);
      continue;
    }
    const WeightRows weight = {w.type, RowAt(w, 0, expert, 0), w.strides[1], w.dims[0]};
    const float* from = F32Row(x, x.dims[1] == 1 ? 0 : slot, token, 0);
    DotRows(weight, from, bias ? F32Row(*bias, expert) : nullptr, y, features);
  }
}

}  // namespace trine::reference
