// Inputs and measures for tests of the encoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/test_util.h"

namespace trine::quant {

// Returns nearly normal values of standard deviation 0.02: sums of twelve uniform numbers.
inline std::vector<float> GaussianRow(int64_t values, uint64_t seed) {
  Random random(seed);
  std::vector<float> row(static_cast<size_t>(values));
  for (float& value : row) {
    value = 0.0f;
    for (int i = 0; i < 12; ++i) value += random.Uniform();
    value *= 0.01f;
  }
  return row;
}

// Returns an empty vector when the encoder refuses.
inline std::vector<std::byte> Encoded(Type type, const std::vector<float>& row,
                                      const float* importance = nullptr) {
  uint64_t bytes = 0;
  if (!RowBytes(type, static_cast<int64_t>(row.size()), &bytes)) return {};
  std::vector<std::byte> out(bytes);
  const bool done =
      EncodeRow(type, row.data(), static_cast<int64_t>(row.size()), importance, out.data());
  return done ? out : std::vector<std::byte>();
}

inline std::vector<float> Decoded(Type type, const std::vector<std::byte>& bytes, size_t values) {
  std::vector<float> row(values);
  DequantizeRow(type, bytes.data(), static_cast<int64_t>(values), row.data());
  return row;
}

inline std::vector<float> RoundTrip(Type type, const std::vector<float>& row,
                                    const float* importance = nullptr) {
  const std::vector<std::byte> bytes = Encoded(type, row, importance);
  return bytes.empty() ? std::vector<float>() : Decoded(type, bytes, row.size());
}

// Returns the sum of squared differences, each times its weight.
inline double SquaredError(const std::vector<float>& a, const std::vector<float>& b,
                           const std::vector<float>& weights = {}) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference * (weights.empty() ? 1.0 : weights[i]);
  }
  return sum;
}

}  // namespace trine::quant
