// Compares quantised activations on the device with the host's.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/hip/weights/quantized.h"
#include "kernels/quant/activation.h"
#include "kernels/quant/float_bits.h"
#include "kernels/reference/view.h"

namespace trine::hip::testing {

class QuantizedOnDevice {
 public:
  QuantizedOnDevice(int64_t blocks, int64_t columns)
      : blocks_(blocks), columns_(columns), memory_(QuantizedBytes(blocks, columns)) {}

  QuantizedColumns columns() const { return QuantizedAt(memory_.data(), blocks_, columns_); }

  // Returns "", or names the first block that differs from the quantised rows of `x`. Row i of x is
  // column i.
  std::string Wrong(const reference::View& x) const {
    std::vector<std::byte> bytes(memory_.bytes());
    memory_.Read(bytes.data());
    const QuantizedColumns got = QuantizedAt(bytes.data(), blocks_, columns_);
    for (int64_t column = 0; column < columns_; ++column) {
      for (int64_t b = 0; b < blocks_; ++b) {
        quant::ActivationBlock want;
        quant::QuantizeActivation(reference::F32Row(x, column) + 32 * b, &want);
        const int64_t at = column * blocks_ + b;
        const auto low = static_cast<int16_t>(got.sums[at]);
        const int32_t high = static_cast<int32_t>(got.sums[at]) >> 16;
        if (std::memcmp(got.values + at * 8, want.q, 32) == 0 &&
            quant::Bits(got.scales[at]) == quant::Bits(want.d) && low == want.sum[0] &&
            high == want.sum[1]) {
          continue;
        }
        return "block " + std::to_string(b) + " of column " + std::to_string(column);
      }
    }
    return "";
  }

 private:
  int64_t blocks_, columns_;
  DeviceMemory memory_;
};

}  // namespace trine::hip::testing
