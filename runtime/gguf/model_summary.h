// Summarises what a model file has and how much memory running it would take, from its tensor list
// and metadata alone. Works for any architecture, even if Trine can't run it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/gguf_file.h"

namespace trine::gguf {

// Sums over some tensors of a file.
struct TensorSum {
  uint64_t tensors = 0;
  uint64_t parameters = 0;
  uint64_t bytes = 0;
  std::map<quant::Type, uint64_t> bytes_by_type;

  void Add(const TensorInfo& tensor);
  double BitsPerWeight() const;  // 0 if there are no tensors
};

struct ModelSummary {
  TensorSum all;
  std::map<quant::Type, TensorSum> by_type;
  TensorSum embedding;                  // token_embd and its like: placed with the first layer
  TensorSum output;                     // output and its norm: placed with the last layer
  TensorSum other;                      // tensors that every layer needs, or none
  std::map<int64_t, TensorSum> layers;  // [N]: the tensors blk.N.*
  // true: there is no output.weight, so the last layer's device needs token_embd, too.
  bool output_is_embedding = false;
};

ModelSummary Summarize(const File& file);

// Returns the N of "blk.N.attn_q.weight", or nullopt for a tensor outside of the layers.
std::optional<int64_t> LayerOf(std::string_view tensor);

// The sizes that determine how much memory a forward pass takes.
struct ModelShape {
  int64_t layers = 0;
  int64_t context = 0;  // positions the model was trained for
  int64_t width = 0;    // values of the hidden state
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  int64_t key_length = 0;         // values of one head's key
  int64_t value_length = 0;       // values of one head's value
  std::vector<int64_t> heads;     // by layer: the number of heads
  std::vector<int64_t> kv_heads;  // by layer: the number of kv heads; 0: no keys and values
};

// Reads the sizes from the metadata. Errors name the key that is missing or wrong.
absl::StatusOr<ModelShape> ReadModelShape(const File& file);

// Returns the bytes of keys and values of `n_positions` in all layers. Returns nullopt if a head is
// not a whole number of the type's blocks, or if the size does not fit in 64 bits.
std::optional<uint64_t> KvBytes(const ModelShape& shape, quant::Type type, int64_t n_positions);

// Estimates the bytes that a device needs, in addition to weights and KV cache, for a pass of
// `n_tokens`, one of which gives logits.
uint64_t ScratchBytes(const ModelShape& shape, int64_t n_tokens);

}  // namespace trine::gguf
