// What a model file holds and what running it would take, from its tensor list and metadata alone:
// for files of any architecture, also ones this project can not run.
#ifndef TRINE_RUNTIME_GGUF_MODEL_SUMMARY_H_
#define TRINE_RUNTIME_GGUF_MODEL_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/gguf_file.h"

namespace trine::gguf {

struct TensorSum {
  uint64_t tensors = 0;
  uint64_t parameters = 0;
  uint64_t bytes = 0;
  std::map<quant::Type, uint64_t> bytes_by_type;

  void Add(const TensorInfo& tensor);
  double BitsPerWeight() const;  // 0 without tensors
};

struct ModelSummary {
  TensorSum all;
  std::map<quant::Type, TensorSum> by_type;
  TensorSum embedding;                  // token_embd and its like: with the first layer
  TensorSum output;                     // output and its norm: with the last layer
  TensorSum other;                      // for every layer, or for none
  std::map<int64_t, TensorSum> layers;  // blk.N
  bool output_is_embedding = false;     // no output.weight: the last layer's tier needs token_embd
};

ModelSummary Summarize(const File& file);

// Sizes that decide how much memory a forward pass takes.
struct ModelShape {
  int64_t layers = 0;
  int64_t context = 0;  // positions the model was trained for
  int64_t width = 0;    // of the hidden state
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  int64_t key_length = 0;  // of one head
  int64_t value_length = 0;
  std::vector<int64_t> heads;     // of each layer
  std::vector<int64_t> kv_heads;  // of each layer; 0: the layer keeps no keys and values
};

// An error names the key that is missing or makes no sense.
absl::StatusOr<ModelShape> ReadModelShape(const File& file);

// Of keys and values of `n_positions` in all layers. Nothing when a head is no whole number of the
// type's blocks, or the size does not fit in 64 bits.
std::optional<uint64_t> KvBytes(const ModelShape& shape, quant::Type type, int64_t n_positions);

// About what a tier needs beside weights and KV for a pass of `n_tokens`, one of which gives
// logits.
uint64_t ScratchBytes(const ModelShape& shape, int64_t n_tokens);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_MODEL_SUMMARY_H_
