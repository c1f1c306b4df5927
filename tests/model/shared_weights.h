// Test fixture: a small model's file, devices of plugins, and products of the weights on them.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/exec/segment.h"
#include "gtest/gtest.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/make_model/make_model.h"
#include "runtime/make_model/presets.h"
#include "runtime/model/weights/weight_store.h"

namespace trine {

class SharedWeightsTest : public ::testing::Test {
 protected:
  SharedWeightsTest() : host_({}, [](uint32_t, const std::string&) {}) {}
  ~SharedWeightsTest() override { std::filesystem::remove(path_); }

  void SetUp() override {
    auto shape = FindPreset("tiny-llama");
    ASSERT_TRUE(shape.ok());
    shape->ff = 1024;  // gives weights pages of their own
    ASSERT_TRUE(MakeModel(*shape, {}, path_).ok());
    auto file = gguf::File::Open(path_, open_);
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    for (int layer = 0; layer < 2; ++layer) {
      const auto* tensor = file_->FindTensor("blk." + std::to_string(layer) + ".ffn_up.weight");
      ASSERT_NE(tensor, nullptr);
      weights_.push_back(tensor);
    }
  }

  std::shared_ptr<Device> Open(const std::string& plugin, const std::string& options = "",
                               uint32_t index = 0) {
    auto library = PluginLibrary::Load(plugin);
    EXPECT_TRUE(library.ok()) << library.status();
    if (!library.ok()) return nullptr;
    auto backend = Backend::Open(*std::move(library), host_, options);
    EXPECT_TRUE(backend.ok()) << backend.status();
    if (!backend.ok() || (*backend)->device_count() <= index) return nullptr;
    auto device = Device::Open(*backend, index);
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() ? *device : nullptr;
  }

  // Makes a store with all weights for all devices.
  std::unique_ptr<WeightStore> Store(const std::vector<std::shared_ptr<Device>>& devices) {
    auto store = std::make_unique<WeightStore>(file_);
    for (const auto& device : devices) {
      for (const gguf::TensorInfo* tensor : weights_) store->Want(device, *tensor);
    }
    LoadMeter meter(nullptr);
    const absl::Status status = store->Import(host_, &meter);
    EXPECT_TRUE(status.ok()) << status;
    return store;
  }

  // Returns the products of each weight with the same columns on the device.
  std::vector<std::vector<float>> Products(WeightStore& store,
                                           const std::shared_ptr<Device>& device) {
    std::vector<std::vector<float>> all;
    for (const gguf::TensorInfo* tensor : weights_) {
      const auto place = store.Place(device, *tensor, false, false);
      EXPECT_TRUE(place.ok()) << place.status();
      if (!place.ok()) return {};
      all.push_back(Product(*tensor, *place, device));
    }
    return all;
  }

  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const gguf::TensorInfo* tensor : weights_) bytes += tensor->bytes;
    return bytes;
  }

  HostServices host_;
  gguf::OpenOptions open_;  // used by SetUp to open the file
  std::shared_ptr<const gguf::File> file_;
  std::vector<const gguf::TensorInfo*> weights_;

 private:
  std::vector<float> Product(const gguf::TensorInfo& tensor, const WeightPlace& place,
                             const std::shared_ptr<Device>& device) {
    constexpr int64_t kColumns = 3;
    const int64_t k = tensor.dims[0], n = tensor.dims[1];
    OpGraph graph;
    const TensorId w =
        graph.AddTensor(TRINE_ROLE_CONSTANT, static_cast<uint32_t>(tensor.type), {k, n});
    const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {k, kColumns});
    const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {n, kColumns});
    graph.AddOp(TRINE_OP_MATMUL, {w, x}, {y});
    graph.Finish();
    graph.SetOffset(w, place.tensor_offset);
    const SlotId slot = graph.SlotOf(w);
    auto segment = Segment::Create(device, std::move(graph), {{slot, place.span}});
    EXPECT_TRUE(segment.ok()) << segment.status();
    if (!segment.ok()) return {};
    std::vector<float> in(static_cast<size_t>(k * kColumns)),
        out(static_cast<size_t>(n * kColumns));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 7) - 2.5f;
    EXPECT_TRUE((*segment)->Write(x, in.data(), in.size() * sizeof(float)).ok());
    const absl::Status status = (*segment)->Run({});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE((*segment)->Read(y, 0, out.data(), out.size() * sizeof(float)).ok());
    return out;
  }

  const std::string path_ = (std::filesystem::temp_directory_path() /
                             ("trine-shared-" + std::to_string(getpid()) + ".gguf"))
                                .string();
};

}  // namespace trine
