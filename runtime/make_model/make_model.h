// Models with random weights: real shapes for benchmarks, tiny ones for tests, loadable by whatever
// reads GGUF. The same shape, seed and type give the same bytes on every machine.
#ifndef TRINE_RUNTIME_MAKE_MODEL_MAKE_MODEL_H_
#define TRINE_RUNTIME_MAKE_MODEL_MAKE_MODEL_H_

#include <cstddef>
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
  bool pure = false;                   // the mix's base type for all matrices
  uint32_t threads = 1;
  uint64_t max_part_bytes = 0;  // as gguf::WriterOptions has it
};

// Called now and then with how much is done, 0 to 1; false ends the making with CANCELLED.
using MakeModelProgress = std::function<bool(double fraction)>;

// All of a file but the data.
struct ModelPlan {
  gguf::Builder builder;
  std::vector<TensorSpec> tensors;  // the builder's, in its order
  uint64_t parameters = 0;
  uint64_t bytes = 0;  // of tensor data

  double BitsPerWeight() const;
};
absl::StatusOr<ModelPlan> PlanModel(const ModelShape& shape, const MakeModelOptions& options);

// Data is made and written in pieces: memory does not grow with the model. Nothing is left behind
// by a failure. RESOURCE_EXHAUSTED when the disk has too little room, before anything is written.
absl::Status MakeModel(const ModelShape& shape, const MakeModelOptions& options,
                       const std::string& path, const MakeModelProgress& progress = nullptr);

// The whole file in memory, for tests; INVALID_ARGUMENT above a gigabyte.
absl::StatusOr<std::vector<std::byte>> MakeModelBytes(const ModelShape& shape,
                                                      const MakeModelOptions& options = {});

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_MAKE_MODEL_H_
