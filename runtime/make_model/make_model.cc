#include "runtime/make_model/make_model.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/file_type.h"
#include "runtime/gguf/writer.h"
#include "runtime/make_model/metadata.h"
#include "runtime/make_model/tensor_types.h"
#include "runtime/make_model/vocabulary.h"
#include "runtime/make_model/weights.h"

namespace trine {
namespace {

constexpr uint64_t kMaxBytesInMemory = 1u << 30;

}  // namespace

double ModelPlan::BitsPerWeight() const {
  return 8 * static_cast<double>(bytes) / static_cast<double>(parameters);
}

absl::StatusOr<ModelPlan> PlanModel(const ModelShape& shape, const MakeModelOptions& options) {
  const absl::Status status = CheckShape(shape);
  if (!status.ok()) return status;
  if (options.mix != nullptr && options.mix->copy) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.mix->name, " is no type a new model can have"));
  }
  ModelPlan plan;
  SetMetadata(shape, &plan.builder);
  plan.tensors = ListTensors(shape);
  const std::string file_type = ChooseTypes(shape, options.mix, options.pure, &plan.tensors);
  if (const auto number = gguf::FileTypeNumber(file_type)) {
    plan.builder.SetUint32(gguf::kFileTypeKey, *number);
  }
  plan.builder.SetUint32(gguf::kQuantizationVersionKey, gguf::kQuantizationVersion);
  SetVocabulary(shape, &plan.builder);
  for (const TensorSpec& tensor : plan.tensors) {
    plan.builder.AddTensor(tensor.name, tensor.type, tensor.dims);
    plan.parameters += static_cast<uint64_t>(tensor.dims[0] * tensor.rows());
  }
  if (!plan.builder.status().ok()) return plan.builder.status();
  for (const gguf::Builder::Tensor& tensor : plan.builder.tensors()) plan.bytes += tensor.bytes;
  return plan;
}

absl::Status MakeModel(const ModelShape& shape, const MakeModelOptions& options,
                       const std::string& path, const MakeModelProgress& progress) {
  absl::StatusOr<ModelPlan> plan = PlanModel(shape, options);
  if (!plan.ok()) return plan.status();
  auto writer = gguf::Writer::Create(path, std::move(plan->builder),
                                     {.max_part_bytes = options.max_part_bytes});
  if (!writer.ok()) return writer.status();
  WeightMaker maker(options.seed, options.threads);
  uint64_t done = 0;
  for (const TensorSpec& tensor : plan->tensors) {
    const absl::Status status = maker.Make(tensor, [&](absl::Span<const std::byte> data) {
      absl::Status written = (*writer)->Write(data);
      done += data.size();
      const double fraction = static_cast<double>(done) / static_cast<double>(plan->bytes);
      if (!written.ok() || !progress || progress(fraction)) return written;
      return absl::CancelledError(absl::StrCat(path, ": given up; nothing was written"));
    });
    if (!status.ok()) return status;
  }
  return (*writer)->Finish();
}

absl::StatusOr<std::vector<std::byte>> MakeModelBytes(const ModelShape& shape,
                                                      const MakeModelOptions& options) {
  const absl::StatusOr<ModelPlan> plan = PlanModel(shape, options);
  if (!plan.ok()) return plan.status();
  if (plan->bytes > kMaxBytesInMemory) {
    return absl::InvalidArgumentError(
        absl::StrCat(shape.name, ": ", plan->bytes, " bytes are too many to be made in memory"));
  }
  WeightMaker maker(options.seed, options.threads);
  std::vector<std::vector<std::byte>> data;
  for (const TensorSpec& tensor : plan->tensors) {
    std::vector<std::byte>& bytes = data.emplace_back();
    const absl::Status status = maker.Make(tensor, [&](absl::Span<const std::byte> piece) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  const std::vector<absl::Span<const std::byte>> spans(data.begin(), data.end());
  return gguf::ToBytes(plan->builder, spans);
}

}  // namespace trine
