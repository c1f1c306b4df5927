// Small models with random weights, the same on every machine: every special case of a family in a
// file that loads at once. `make-tiny-model` writes them, so that other engines can run them, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/builder.h"

namespace trine {

struct TinyModelSpec {
  std::string architecture = "llama";
  quant::Type type = quant::Type::kF32;  // of the matrices
  int64_t n_layers = 3;
  int64_t n_embd = 96;
  int64_t n_heads = 6;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 16;
  int64_t n_ff = 160;
  int64_t n_ctx = 256;
  bool tied = false;          // no output.weight
  bool rope_factors = false;  // Llama 3's rope_freqs.weight
  double rope_scale = 1;      // linear scaling
  uint64_t seed = 1;
};

// Returns a named spec: "llama", "llama3" (factors), "llama-linear", "llama-odd" (head dimensions
// independent of the width, one KV head), "qwen2", "qwen3", "qwen3-tied".
absl::StatusOr<TinyModelSpec> TinyModelByName(const std::string& name);

// Metadata and tensors with their data, which a test may change before writing them.
struct TinyModel {
  gguf::Builder builder;
  std::vector<std::vector<std::byte>> data;  // one per tensor

  std::vector<std::byte> ToBytes() const;
};
TinyModel MakeTinyModel(const TinyModelSpec& spec);

// Returns the size of a tiny model's vocabulary: 256 bytes, some pairs, and two control tokens.
int64_t TinyVocabularySize();

}  // namespace trine
