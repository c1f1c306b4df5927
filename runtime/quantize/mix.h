// The named mixes: which type the tensors of a model mostly get, and which of them get another.
#ifndef TRINE_RUNTIME_QUANTIZE_MIX_H_
#define TRINE_RUNTIME_QUANTIZE_MIX_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/quantize/tensor_role.h"

namespace trine::quantize {

struct Mix {
  const char* name;  // also the name of the file type
  quant::Type base;
  const char* about;  // for --help
  bool copy = false;  // every tensor stays what it is
};

// In order of size, from the smallest.
absl::Span<const Mix> AllMixes();

// "q4_k_m", "Q4_K" (which is Q4_K_M), ... The error lists the names.
absl::StatusOr<const Mix*> FindMix(std::string_view name);

// "q6_k" as a type that tensors of a file can be encoded in. The error lists the names.
absl::StatusOr<quant::Type> FindTensorType(std::string_view name);

// What the rules of the mixes ask about a model.
struct ModelFacts {
  int64_t layers = 0;
  int64_t experts = 1;        // of the largest mixture
  bool shares_heads = false;  // four or more query heads to one of keys and values
  bool tied_output = false;   // the token embedding makes the logits too
};

ModelFacts FactsOf(const gguf::File& file);

// The type a mix gives to a tensor that is quantised, its shape aside.
quant::Type MixedType(const Mix& mix, const gguf::TensorInfo& tensor, const ModelFacts& facts);

// `type`, or the next larger one whose blocks make up a row of `values`.
quant::Type FittingType(quant::Type type, int64_t values);

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_MIX_H_
