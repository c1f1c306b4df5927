// What a file becomes: for each of its tensors the type it is stored in, with sizes and warnings,
// before anything is computed or written.
#ifndef TRINE_RUNTIME_QUANTIZE_PLAN_H_
#define TRINE_RUNTIME_QUANTIZE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/builder.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/quantize/importance.h"
#include "runtime/quantize/mix.h"

namespace trine::quantize {

struct TypeOverride {
  std::string pattern;  // a regular expression, found anywhere in a tensor's name
  quant::Type type;
};

struct PlanOptions {
  const Mix* mix = nullptr;
  bool pure = false;              // the mix's base type for every matrix
  bool allow_requantize = false;  // also from a type that has lost bits already
  bool leave_output = false;      // the tensor that makes the logits stays what it is
  std::optional<quant::Type> output_type;
  std::optional<quant::Type> embedding_type;
  std::vector<TypeOverride> overrides;  // the first that matches counts, before all of the above
  const ImportanceMatrix* importance = nullptr;  // outlives the plan
  std::string importance_path;                   // its name goes to the metadata
};

struct PlannedTensor {
  const gguf::TensorInfo* source = nullptr;  // the file outlives the plan
  quant::Type type = quant::Type::kF32;
  quant::Type wanted = quant::Type::kF32;  // another than `type` where rows are no whole blocks
  uint64_t bytes = 0;
  absl::Span<const float> importance;  // per column, or per column of each expert

  bool copied() const { return type == source->type; }
};

struct Plan {
  gguf::Builder builder;               // metadata and tensors of the new file
  std::vector<PlannedTensor> tensors;  // in the order of the file
  std::vector<std::string> warnings;
  uint64_t source_bytes = 0;  // of all tensors
  uint64_t bytes = 0;
  uint64_t parameters = 0;

  double BitsPerWeight() const;
};

absl::StatusOr<Plan> MakePlan(const gguf::File& file, const PlanOptions& options);

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_PLAN_H_
