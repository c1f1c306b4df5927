// Compares quantised activations of shaders with kernels/quant.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/quant/activation.h"
#include "kernels/vulkan/runs/products.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {

// Returns where the columns from `offset` on differ from those of x, of which `rows` rows make a
// column; "" where they don't.
inline std::string WrongColumns(const Bytes& quantized, uint64_t offset, const reference::Tensor& x,
                                int64_t rows = 1) {
  const int64_t row_blocks = x.view().dims[0] / 32, blocks = row_blocks * rows;
  const uint64_t column_bytes = QuantizedBytes(32 * blocks, 1);
  for (int64_t r = 0; r < reference::Rows(x.view()); ++r) {
    const std::byte* column = quantized.data() + offset + column_bytes * (r / rows);
    const std::byte* scales = column + (blocks + 7) / 8 * 256;
    for (int64_t i = 0; i < row_blocks; ++i) {
      const int64_t b = r % rows * row_blocks + i;
      quant::ActivationBlock want;
      quant::QuantizeActivation(reference::F32Row(x.view(), r) + 32 * i, &want);
      const std::byte* low = column + 16 * (b + b / 8 * 8);
      const int16_t sums[2] = {static_cast<int16_t>(want.sum[0]),
                               static_cast<int16_t>(want.sum[1])};
      if (std::memcmp(low, want.q, 16) != 0 || std::memcmp(low + 128, want.q + 16, 16) != 0 ||
          std::memcmp(scales + 4 * b, &want.d, 4) != 0 ||
          std::memcmp(scales + 4 * (blocks + b), sums, 4) != 0) {
        return "row " + std::to_string(r) + ", block " + std::to_string(i);
      }
    }
  }
  return "";
}

}  // namespace trine::vulkan
