// Makes models with random weights: models of real shapes for benchmarks, and tiny models for
// tests. Any reader of GGUF can load them. The same shape, seed and types give the same bytes on
// every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/builder.h"
#include "runtime/make_model/model_shape.h"
#include "runtime/make_model/tensor_list.h"
#include "runtime/quantize/mix.h"

namespace trine {

struct MakeModelOptions {
  uint64_t seed = 1;
  const quantize::Mix* mix = nullptr;  // null: the shape's own types
  bool pure = false;                   // true: all matrices get the mix's base type
  uint32_t threads = 1;
  uint64_t max_part_bytes = 0;  // as in gguf::WriterOptions
};

// Called now and then with the fraction that is done. If it returns false, MakeModel returns
// CANCELLED.
using MakeModelProgress = std::function<bool(double fraction)>;

// The contents of a model's file, except the tensors' data.
struct ModelPlan {
  gguf::Builder builder;
  std::vector<TensorSpec> tensors;  // in the builder's order
  uint64_t parameters = 0;
  uint64_t bytes = 0;  // the size of the tensors' data

  double BitsPerWeight() const;
};
absl::StatusOr<ModelPlan> PlanModel(const ModelShape& shape, const MakeModelOptions& options);

// Writes the model to `path`. Makes the data in pieces, so memory does not grow with the model. A
// failure leaves no file. Returns RESOURCE_EXHAUSTED, before anything is written, if the disk has
// too little room.
absl::Status MakeModel(const ModelShape& shape, const MakeModelOptions& options,
                       const std::string& path, const MakeModelProgress& progress = nullptr);

}  // namespace trine
