// Plans the quantisation of a file, before anything is computed or written: the type of each tensor
// in the new file, with sizes and warnings.
#pragma once

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
  std::string pattern;  // a regular expression that matches anywhere in a tensor's name
  quant::Type type;
};

struct PlanOptions {
  const Mix* mix = nullptr;
  bool pure = false;              // true: every matrix gets the mix's base type
  bool allow_requantize = false;  // true: allows tensors whose types have lost bits already
  bool leave_output = false;      // true: the output matrix keeps its type
  std::optional<quant::Type> output_type;
  std::optional<quant::Type> embedding_type;
  std::vector<TypeOverride> overrides;  // the first that matches decides, before the options above
  const ImportanceMatrix* importance = nullptr;  // must outlive the plan
  std::string importance_path;                   // its file name goes into the metadata
};

struct PlannedTensor {
  const gguf::TensorInfo* source = nullptr;  // the file must outlive the plan
  quant::Type type = quant::Type::kF32;
  // The type that the options ask for. Differs from `type` if rows are not whole blocks of it.
  quant::Type wanted = quant::Type::kF32;
  uint64_t bytes = 0;
  absl::Span<const float> importance;  // one for each column, or for each column of each expert

  bool copied() const { return type == source->type; }
};

struct Plan {
  gguf::Builder builder;               // the metadata and tensors of the new file
  std::vector<PlannedTensor> tensors;  // in the order of the file
  std::vector<std::string> warnings;
  uint64_t source_bytes = 0;  // the bytes of all tensors in the old file
  uint64_t bytes = 0;         // the bytes of all tensors in the new file
  uint64_t parameters = 0;

  double BitsPerWeight() const;
};

absl::StatusOr<Plan> MakePlan(const gguf::File& file, const PlanOptions& options);

}  // namespace trine::quantize
