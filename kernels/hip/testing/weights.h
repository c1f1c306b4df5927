// Puts weights of the host on the device, in the file's layout or packed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/quant/packed_rows.h"
#include "kernels/reference/test_tensor.h"

namespace trine::hip::testing {

struct Form {
  quant::Type type;
  bool packed;
};

inline std::vector<Form> AllForms() {
  std::vector<Form> forms;
  for (const quant::Type type : quant::kWeightTypes) {
    forms.push_back({type, false});
    if (quant::HasPackedLayout(type)) forms.push_back({type, true});
  }
  return forms;
}

inline std::string NameOf(const ::testing::TestParamInfo<Form>& info) {
  return std::string(quant::Traits(info.param.type).name) + (info.param.packed ? "_packed" : "");
}

// Returns the alignment of the rows in a file.
inline int64_t BlockAlignment(quant::Type type) {
  return type == quant::Type::kF32 ? 4 : type == quant::Type::kMXFP4 ? 1 : 2;
}

class WeightsOnDevice {
 public:
  // w is [k, n, experts]. `gap`: packed rows are followed by 16 unused bytes.
  WeightsOnDevice(const reference::View& w, bool packed, bool gap) {
    if (!packed) {
      plain_ = std::make_unique<OnDevice>(w);
      tensor_ = plain_->tensor();
      return;
    }
    uint64_t row = 0;
    EXPECT_TRUE(quant::PackedRowBytes(w.type, w.dims[0], &row));
    const uint64_t stride = row + (gap ? 16 : 0);
    std::vector<std::byte> bytes(stride * static_cast<uint64_t>(w.dims[1] * w.dims[2]));
    for (int64_t r = 0; r < w.dims[1] * w.dims[2]; ++r) {
      quant::PackRow(w.type, w.dims[0], reference::RowAt(w, r),
                     bytes.data() + static_cast<uint64_t>(r) * stride);
    }
    packed_ = std::make_unique<DeviceMemory>(bytes.size());
    packed_->Write(bytes.data());
    tensor_.data = packed_->data();
    tensor_.type = w.type;
    tensor_.packed = true;
    tensor_.dims = {w.dims[0], w.dims[1], w.dims[2], 1};
    const auto bytes_of_row = static_cast<int64_t>(stride);
    tensor_.strides = {0, bytes_of_row, bytes_of_row * w.dims[1],
                       bytes_of_row * w.dims[1] * w.dims[2]};
  }

  const Tensor& tensor() const { return tensor_; }

 private:
  std::unique_ptr<OnDevice> plain_;
  std::unique_ptr<DeviceMemory> packed_;
  Tensor tensor_;
};

}  // namespace trine::hip::testing
