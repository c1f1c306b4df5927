#include "runtime/model/weight_store.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/validate.h"

namespace trine {
namespace {

// The tensor's bytes as the device is to have them.
std::vector<std::byte> Converted(const gguf::TensorInfo& tensor, bool as_f32) {
  if (!as_f32 || tensor.type == quant::Type::kF32) {
    return std::vector<std::byte>(tensor.data, tensor.data + tensor.bytes);
  }
  const uint64_t row_bytes = tensor.bytes / static_cast<uint64_t>(tensor.Rows());
  const auto row_values = static_cast<size_t>(tensor.dims[0]);
  std::vector<std::byte> out(static_cast<size_t>(tensor.Rows()) * row_values * sizeof(float));
  for (int64_t r = 0; r < tensor.Rows(); ++r) {
    auto* to = reinterpret_cast<float*>(out.data()) + static_cast<size_t>(r) * row_values;
    quant::DequantizeRow(tensor.type, tensor.data + static_cast<uint64_t>(r) * row_bytes,
                         tensor.dims[0], to);
  }
  return out;
}

}  // namespace

absl::StatusOr<const Buffer*> WeightStore::ImportPart(size_t part) {
  const auto found = imported_.find(part);
  if (found != imported_.end()) return &found->second;
  const gguf::Part& memory = file_->parts()[part];
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_WEIGHTS;
  desc.flags = TRINE_IMPORT_READ_ONLY;
  desc.host_ptr = const_cast<std::byte*>(memory.data);  // READ_ONLY: nobody writes through it
  desc.bytes = memory.mapped_bytes;
  auto buffer = Buffer::Import(device_, desc);
  if (!buffer.ok()) return buffer.status();
  return &imported_.emplace(part, *std::move(buffer)).first->second;
}

absl::StatusOr<WeightPlace> WeightStore::Copy(const gguf::TensorInfo& tensor, bool as_f32,
                                              bool canon) {
  const auto key = std::make_pair(&tensor, as_f32);
  auto found = copies_.find(key);
  if (found == copies_.end()) {
    std::vector<std::byte> bytes = Converted(tensor, as_f32);
    if (canon) {
      const quant::Type type = as_f32 ? quant::Type::kF32 : tensor.type;
      quant::CanonRow(type, bytes.data(), tensor.dims[0] * tensor.Rows());
    }
    auto buffer = Buffer::Allocate(device_, bytes.size(), TRINE_MEMORY_WEIGHTS);
    if (!buffer.ok()) return buffer.status();
    if (absl::Status s = buffer->Write(0, bytes.data(), bytes.size()); !s.ok()) return s;
    copied_bytes_ += bytes.size();
    found = copies_.emplace(key, *std::move(buffer)).first;
  }
  const uint64_t bytes =
      as_f32 ? static_cast<uint64_t>(tensor.dims[0] * tensor.Rows()) * sizeof(float) : tensor.bytes;
  return WeightPlace{found->second.Span(0, bytes), 0};
}

absl::StatusOr<WeightPlace> WeightStore::Place(const gguf::TensorInfo& tensor, bool as_f32,
                                               bool canon) {
  const trine_device_info& info = device_->info();
  const bool in_place = !canon && (!as_f32 || tensor.type == quant::Type::kF32);
  if (!in_place || info.import_alignment == 0 || import_refused_) {
    return Copy(tensor, as_f32, canon);
  }
  const auto buffer = ImportPart(tensor.part);
  if (!buffer.ok()) {
    import_refused_ = true;
    return Copy(tensor, as_f32, canon);
  }
  const uint64_t rest = tensor.offset % std::max<uint32_t>(1, info.buffer_alignment);
  return WeightPlace{(*buffer)->Span(tensor.offset - rest, rest + tensor.bytes), rest};
}

}  // namespace trine
