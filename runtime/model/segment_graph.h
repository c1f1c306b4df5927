// The op graph of a run of layers, with what has to be bound to it: weights by name, KV caches by
// layer, and the small tensors that travel with every batch.
#ifndef TRINE_RUNTIME_MODEL_SEGMENT_GRAPH_H_
#define TRINE_RUNTIME_MODEL_SEGMENT_GRAPH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/op_graph.h"
#include "plugins/packed_layout.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"

namespace trine {

// Positions in one KV block; divides the contract's chunk of 256.
inline constexpr int64_t kBlockPositions = 64;

// Sizes that are decided when a model is loaded, not by its file.
struct SegmentLimits {
  int64_t max_tokens = 512;  // of one forward pass
  int64_t max_sequences = 1;
  int64_t max_output_rows = 1;  // rows of logits of one forward pass
  int64_t max_context = 0;      // positions of one sequence
  int64_t kv_blocks = 0;        // in each layer's cache
  uint32_t kv_type_k = TRINE_DTYPE_F16;
  uint32_t kv_type_v = TRINE_DTYPE_F16;
  bool embeddings = false;   // the last segment gives the normed rows themselves, not their logits
  bool hidden_rows = false;  // or both
  int64_t branches = 0;      // sequences beyond those with room for a whole context

  int64_t max_blocks_per_sequence() const {
    return (max_context + kBlockPositions - 1) / kBlockPositions;
  }
};

struct WeightUse {
  TensorId tensor = 0;
  const gguf::TensorInfo* info = nullptr;
  bool as_f32 = false;                 // norms and biases, whatever the file has them in
  std::optional<PackedLayout> packed;  // as the graph has it; none: plain
};

struct KvUse {
  TensorId tensor = 0;
  int64_t layer = 0;
  size_t number = 0;  // of the segment's caches; pieces of it that have the same have one memory
};

// TRINE_NONE where the segment has none.
struct SegmentIo {
  TensorId tokens = TRINE_NONE;         // i32 [tokens]: with the embedding
  TensorId hidden_in = TRINE_NONE;      // f32 [n_embd, tokens]: without it
  TensorId hidden_out = TRINE_NONE;     // f32 [n_embd, tokens]: without the head
  TensorId rope = TRINE_NONE;           // f32 [2 * pairs, tokens]
  TensorId rope_windowed = TRINE_NONE;  // the same of windowed layers that have their own
  TensorId kv_slots = TRINE_NONE;       // i32 [tokens]: where each token's k and v go
  TensorId block_table = TRINE_NONE;    // i32 [blocks, sequences]
  TensorId q_offsets = TRINE_NONE;      // i32 [max_sequences + 1]
  TensorId kv_lengths = TRINE_NONE;     // i32 [sequences]
  TensorId output_rows = TRINE_NONE;    // i32 [rows], indices of tokens: last segment
  TensorId logits = TRINE_NONE;         // f32 [n_vocab, rows]: last segment
  TensorId embeddings = TRINE_NONE;  // f32 [n_embd, rows]: last segment, where they are asked for
};

// Parameters of a run, in the graph's order.
enum SegmentParam : uint32_t {
  kParamTokens,
  kParamSequences,
  kParamOutputRows,
  kParamKvPositions,
  kParams
};

// Layers [begin, end), with what stands before the first of the model and behind the last. There
// may be no layer where it has an end.
struct LayerSpan {
  int64_t begin = 0;
  int64_t end = 0;
  bool embedding = false;
  bool head = false;
};

// Where a layer ends, or what stands before the first one: the hidden state that it leaves, and the
// op behind its last one.
struct LayerEnd {
  int64_t layer = -1;  // -1: the embedding
  size_t op = 0;
  TensorId hidden = 0;
};

struct SegmentGraph {
  OpGraph graph;
  SegmentIo io;
  std::vector<WeightUse> weights;
  std::vector<KvUse> caches;
  std::vector<LayerEnd> ends;
};

struct SegmentGraphOptions {
  bool finish =
      true;  // temporaries share memory (OpGraph::Finish); else the graph may still be cut
  bool in_place =
      true;  // ops that can overwrite their input; else every op has an output of its own
};

// INVALID_ARGUMENT names a tensor that is missing or has another shape than the model's numbers
// say.
absl::StatusOr<SegmentGraph> BuildSegmentGraph(const gguf::File& file, const ModelConfig& config,
                                               const SegmentLimits& limits, const LayerSpan& span,
                                               const SegmentGraphOptions& options = {});
// All of the model.
absl::StatusOr<SegmentGraph> BuildSegmentGraph(const gguf::File& file, const ModelConfig& config,
                                               const SegmentLimits& limits);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_SEGMENT_GRAPH_H_
