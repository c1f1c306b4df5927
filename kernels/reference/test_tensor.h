// A tensor that owns its memory, for tests.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/view.h"

namespace trine::reference {

using quant::Fill;
using quant::Random;
using quant::Type;

class Tensor {
 public:
  // Makes a tensor that is dense but for `padding` bytes after each row, so that a kernel which
  // computes strides from dimensions gives wrong results.
  Tensor(Type type, std::initializer_list<int64_t> dims, int64_t padding = 0) {
    view_.type = type;
    std::copy(dims.begin(), dims.end(), view_.dims);
    uint64_t row_bytes = 0;
    quant::RowBytes(type, view_.dims[0], &row_bytes);
    view_.strides[0] = quant::Traits(type).block_bytes;
    view_.strides[1] = static_cast<int64_t>(row_bytes) + padding;
    view_.strides[2] = view_.strides[1] * view_.dims[1];
    view_.strides[3] = view_.strides[2] * view_.dims[2];
    bytes_.resize(static_cast<size_t>(view_.strides[3] * view_.dims[3]));
    view_.data = bytes_.data();
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  Tensor& FillWith(Fill fill, Random* random) {
    for (int64_t r = 0; r < Rows(view_); ++r) {
      for (int64_t i = 0; i < view_.dims[0]; ++i) {
        F32Row(view_, r)[i] = quant::FillValue(fill, random);
      }
    }
    return *this;
  }
  Tensor& FillWeights(bool any_scale, Random* random) {
    for (int64_t r = 0; r < Rows(view_); ++r) {
      const std::vector<std::byte> row =
          quant::RandomWeights(view_.type, view_.dims[0], any_scale, random);
      std::copy(row.begin(), row.end(), RowAt(view_, r));
    }
    return *this;
  }
  Tensor& Set(std::initializer_list<int32_t> values) {
    std::copy(values.begin(), values.end(), I32Row(view_, 0));
    return *this;
  }
  Tensor& Set(std::initializer_list<float> values) {
    std::copy(values.begin(), values.end(), F32Row(view_, 0));
    return *this;
  }

  // Returns row `row` as numbers, whatever the type.
  std::vector<float> Decode(int64_t row) const {
    std::vector<float> out(static_cast<size_t>(view_.dims[0]));
    quant::DequantizeRow(view_.type, RowAt(view_, row), view_.dims[0], out.data());
    return out;
  }

  const View& view() const { return view_; }
  operator const View&() const { return view_; }  // NOLINT: a tensor is used as its view
  float* Row(int64_t row) const { return F32Row(view_, row); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  View view_;
  std::vector<std::byte> bytes_;
};

}  // namespace trine::reference
