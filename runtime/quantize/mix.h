// Mixes. A mix has a name and says which type most tensors of a model get, and which types the
// other tensors get.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/part_reader.h"

namespace trine::quantize {

// The role of a tensor in a model. It determines how many bits the tensor gets.
enum class Role {
  kKept,            // is never quantised: norms, biases, routers, everything small
  kOutput,          // gives the logits
  kTokenEmbedding,  // is read row by row
  kAttentionQ,
  kAttentionK,
  kAttentionV,  // also a tensor of q, k and v together
  kAttentionOutput,
  kFeedForwardUp,  // also the gate
  kFeedForwardDown,
  kOther,  // any other matrix
};

Role RoleOf(const gguf::TensorInfo& tensor);

struct Mix {
  const char* name;  // also the name of the file type
  quant::Type base;
  const char* about;  // the description for --help
  bool copy = false;  // true: every tensor keeps its type
};

// Returns all mixes, sorted by size, the smallest first.
absl::Span<const Mix> AllMixes();

// Finds a mix by name, such as "q4_k_m", or "Q4_K" for Q4_K_M. The error lists the names.
absl::StatusOr<const Mix*> FindMix(std::string_view name);

// Finds a type that tensors can be encoded in, such as "q6_k". The error lists the names.
absl::StatusOr<quant::Type> FindTensorType(std::string_view name);

// The facts about a model that the rules of the mixes need.
struct ModelFacts {
  int64_t layers = 0;
  int64_t experts = 1;        // the most experts that a layer has
  bool shares_heads = false;  // four or more query heads share a head of keys and values
  bool tied_output = false;   // the token embedding is also the output matrix
};

ModelFacts FactsOf(const gguf::File& file);

// Returns the type that a mix gives to a tensor that is quantised. Ignores the tensor's shape.
quant::Type MixedType(const Mix& mix, const gguf::TensorInfo& tensor, const ModelFacts& facts);

// Returns `type`, or the next larger type whose blocks divide a row of `values`.
quant::Type FittingType(quant::Type type, int64_t values);

}  // namespace trine::quantize
