// Helpers of this folder's tests: a small model with a value and a tensor of every type, and a
// folder that is removed at the end of the test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/quant/block_types.h"
#include "runtime/gguf/builder.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/test_bytes.h"

namespace trine::gguf {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "trine-gguf-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
    EXPECT_FALSE(path_.empty());
  }
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::string path_;
};

using Bytes = std::vector<std::byte>;

inline void WriteWhole(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline Bytes ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(data, data + text.size());
}

inline Bytes ToBytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(data, data + text.size());
}

inline void SetEveryValueType(Builder* builder) {
  builder->SetString("general.architecture", "llama");
  builder->SetUint8("test.u8", 200);
  builder->SetInt8("test.i8", -100);
  builder->SetUint16("test.u16", 60000);
  builder->SetInt16("test.i16", -30000);
  builder->SetUint32("test.u32", 4000000000u);
  builder->SetInt32("test.i32", -2000000000);
  builder->SetUint64("test.u64", UINT64_MAX);
  builder->SetInt64("test.i64", INT64_MIN);
  builder->SetFloat32("test.f32", 0.5f);
  builder->SetFloat64("test.f64", -0.1);
  builder->SetBool("test.yes", true);
  builder->SetBool("test.no", false);
  builder->SetStrings("test.strings", std::vector<std::string>{"a", "", std::string("\0b", 2)});
  builder->SetInt32s("test.i32s", {-1, 2, 3});
  builder->SetUint32s("test.u32s", {4, 4000000000u});
  builder->SetFloat32s("test.f32s", {0.25f, -1.5f});
  builder->SetBools("test.bools", {true, false, true});
  builder->SetInt32s("test.none", {});
}

// Returns the name of a SmallModel tensor.
inline std::string TensorOf(quant::Type type) {
  return std::string("t.") + quant::Traits(type).name;
}

inline Builder SmallModel() {
  Builder builder;
  SetEveryValueType(&builder);
  for (const quant::Type type : quant::kAllTypes) {
    if (NumberFromTensorType(type)) builder.AddTensor(TensorOf(type), type, {256, 3});
  }
  builder.AddTensor("t.vector", quant::Type::kF32, {5});
  builder.AddTensor("t.deep", quant::Type::kF16, {3, 2, 5, 7});
  return builder;
}

// Returns bytes that differ from tensor to tensor and from place to place.
inline std::vector<Bytes> DataFor(const Builder& builder) {
  std::vector<Bytes> all;
  uint32_t state = 1;
  for (const Builder::Tensor& tensor : builder.tensors()) {
    Bytes data(tensor.bytes);
    for (std::byte& byte : data) {
      state = state * 1664525u + 1013904223u;
      byte = static_cast<std::byte>(state >> 24);
    }
    all.push_back(std::move(data));
  }
  return all;
}

inline Bytes Build(const Builder& builder, uint32_t version = 3) {
  const std::vector<Bytes> data = DataFor(builder);
  const absl::StatusOr<Bytes> bytes =
      ToBytes(builder, std::vector<absl::Span<const std::byte>>(data.begin(), data.end()), version);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : Bytes();
}

}  // namespace trine::gguf
