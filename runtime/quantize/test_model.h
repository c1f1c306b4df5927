// Model files for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/test_util.h"
#include "runtime/gguf/builder.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/test_bytes.h"
#include "runtime/gguf/test_file.h"

namespace trine::quantize {

class TestModel {
 public:
  TestModel() {
    builder_.SetString("general.architecture", "llama");
    builder_.SetString("general.name", "made up");
  }

  gguf::Builder& builder() { return builder_; }
  const gguf::Builder& builder() const { return builder_; }

  // Adds random values, encoded in `type`.
  TestModel& Add(const std::string& name, std::vector<int64_t> dims,
                 quant::Type type = quant::Type::kF32) {
    int64_t values = 1;
    for (const int64_t dim : dims) values *= dim;
    quant::Random random(data_.size() + 1);
    std::vector<float> row(static_cast<size_t>(values));
    for (float& value : row) value = 0.1f * random.Uniform();
    return Add(name, std::move(dims), type, row);
  }

  TestModel& Add(const std::string& name, std::vector<int64_t> dims, quant::Type type,
                 const std::vector<float>& values) {
    uint64_t bytes = 0;
    EXPECT_TRUE(quant::RowBytes(type, static_cast<int64_t>(values.size()), &bytes));
    std::vector<std::byte> data(bytes);
    if (type == quant::Type::kF32) {
      std::memcpy(data.data(), values.data(), bytes);  // also values that no encoder takes
    } else {
      EXPECT_TRUE(quant::EncodeRow(type, values.data(), static_cast<int64_t>(values.size()),
                                   nullptr, data.data()));
    }
    builder_.AddTensor(name, type, dims);
    data_.push_back(std::move(data));
    return *this;
  }

  std::vector<std::byte> ToBytes() const {
    std::vector<absl::Span<const std::byte>> spans(data_.begin(), data_.end());
    auto bytes = gguf::ToBytes(builder_, spans);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *std::move(bytes) : std::vector<std::byte>();
  }

  std::shared_ptr<const gguf::File> Open() const {
    auto file = gguf::File::FromMemory(ToBytes());
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }

 private:
  gguf::Builder builder_;
  std::vector<std::vector<std::byte>> data_;
};

}  // namespace trine::quantize
