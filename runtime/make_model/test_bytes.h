// Makes models with random weights in memory, for tests. The product writes them to disk
// (make_model.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/gguf/test_bytes.h"
#include "runtime/make_model/make_model.h"
#include "runtime/make_model/weights.h"

namespace trine {

// Returns the bytes of the whole file. Returns INVALID_ARGUMENT if they are more than a gigabyte.
inline absl::StatusOr<std::vector<std::byte>> MakeModelBytes(const ModelShape& shape,
                                                             const MakeModelOptions& options = {}) {
  constexpr uint64_t kMaxBytesInMemory = 1u << 30;
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
