// Comparison of slot images: the second half of oracle.h.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/quant/dequantize.h"
#include "plugins/conformance/oracle.h"
#include "trine/sdk/graph.h"

namespace trine::conformance {
namespace {

std::string Hex(const std::byte* data, size_t bytes) {
  std::string text = "0x";
  for (size_t i = bytes; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", std::to_integer<unsigned>(data[i]));
    text += digits;
  }
  return text;
}

std::string ValueText(uint32_t dtype, const std::byte* data, size_t bytes) {
  char decimal[40] = "";
  if (dtype == TRINE_DTYPE_I32) {
    int32_t value;
    std::memcpy(&value, data, sizeof(value));
    std::snprintf(decimal, sizeof(decimal), " (%d)", value);
  } else if (sdk::FindDtype(dtype)->block == 1) {
    float value;
    quant::DequantizeRow(static_cast<quant::Type>(dtype), data, 1, &value);
    std::snprintf(decimal, sizeof(decimal), " (%.9g)", static_cast<double>(value));
  }
  return Hex(data, bytes) + decimal;
}

// One output tensor, row by row. Marks its bytes in `covered`.
class OutputComparison {
 public:
  OutputComparison(const trine_tensor& t, const std::vector<int64_t>& params)
      : t_(t),
        dims_(sdk::ResolveDims(t, params.data())),
        strides_(sdk::ResolveStrides(t, dims_)),
        row_bytes_(static_cast<size_t>(sdk::ValueBytes(t.dtype, dims_[0]))) {}

  std::string Run(const Bytes& expected, const Bytes& got, bool exact,
                  std::vector<bool>* covered) const {
    for (int64_t i3 = 0; i3 < dims_[3]; ++i3) {
      for (int64_t i2 = 0; i2 < dims_[2]; ++i2) {
        for (int64_t i1 = 0; i1 < dims_[1]; ++i1) {
          const size_t at = t_.offset + static_cast<size_t>(i1 * strides_[1] + i2 * strides_[2] +
                                                            i3 * strides_[3]);
          std::fill_n(covered->begin() + static_cast<ptrdiff_t>(at), row_bytes_, true);
          const int64_t block =
              exact ? DifferentBits(&expected[at], &got[at]) : TooFar(&expected[at], &got[at]);
          if (block < 0) continue;
          const size_t size = sdk::FindDtype(t_.dtype)->block_bytes;
          const size_t where = at + static_cast<size_t>(block) * size;
          return absl::StrCat("at [", block * sdk::FindDtype(t_.dtype)->block, ",", i1, ",", i2,
                              ",", i3, "] expected ", ValueText(t_.dtype, &expected[where], size),
                              ", got ", ValueText(t_.dtype, &got[where], size),
                              exact ? "" : ", beyond the fast tolerance");
        }
      }
    }
    return "";
  }

 private:
  // The first block of the row whose bits differ, or -1.
  int64_t DifferentBits(const std::byte* expected, const std::byte* got) const {
    if (std::memcmp(expected, got, row_bytes_) == 0) return -1;
    const auto diff = std::mismatch(expected, expected + row_bytes_, got);
    return (diff.first - expected) / sdk::FindDtype(t_.dtype)->block_bytes;
  }

  int64_t TooFar(const std::byte* expected, const std::byte* got) const {
    if (t_.dtype == TRINE_DTYPE_I32) return DifferentBits(expected, got);
    const auto type = static_cast<quant::Type>(t_.dtype);
    std::vector<float> want(static_cast<size_t>(dims_[0])), have(want.size());
    quant::DequantizeRow(type, expected, dims_[0], want.data());
    quant::DequantizeRow(type, got, dims_[0], have.data());
    double largest = 0;
    for (float v : want) largest = std::max<double>(largest, std::fabs(v));
    for (size_t i = 0; i < want.size(); ++i) {
      const double off = std::fabs(static_cast<double>(want[i]) - static_cast<double>(have[i]));
      if (!(off <= kFastTolerance * largest + 1e-6)) {
        return static_cast<int64_t>(i) / sdk::FindDtype(t_.dtype)->block;
      }
    }
    return -1;
  }

  const trine_tensor& t_;
  sdk::Dims dims_;
  sdk::Dims strides_;
  size_t row_bytes_;
};

}  // namespace

std::string CompareImages(const GraphSpec& graph, const std::vector<int64_t>& params,
                          const Images& expected, const Images& got, bool exact) {
  for (uint32_t s = 0; s < graph.slots.size(); ++s) {
    if (graph.slots[s].role == TRINE_ROLE_TEMP) continue;
    std::vector<bool> covered(expected[s].size(), false);
    for (size_t o = 0; o < graph.ops.size(); ++o) {
      for (size_t i = 0; i < graph.ops[o].out.size(); ++i) {
        const trine_tensor& t = graph.tensors[graph.ops[o].out[i]];
        if (t.slot != s) continue;
        const std::string wrong =
            OutputComparison(t, params).Run(expected[s], got[s], exact, &covered);
        if (!wrong.empty()) return absl::StrCat("output ", i, " ", wrong);
      }
    }
    for (size_t b = 0; b < covered.size(); ++b) {
      if (covered[b] || expected[s][b] == got[s][b]) continue;
      return absl::StrCat("byte ", b, " of slot ", s,
                          ", outside of every output, was changed from ", Hex(&expected[s][b], 1),
                          " to ", Hex(&got[s][b], 1));
    }
  }
  return "";
}

}  // namespace trine::conformance
