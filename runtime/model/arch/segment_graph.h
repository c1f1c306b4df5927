// The op graph of a span of layers, with the memory to be bound to it: weights by name, KV caches
// by layer, and the small tensors that each batch brings.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "dispatch/devices/layer_span.h"
#include "dispatch/exec/op_graph.h"
#include "plugins/packed_layout.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"

namespace trine {

// Positions in one KV block; divides the contract's chunk of 256.
inline constexpr int64_t kBlockPositions = 64;

// The sizes that are decided when a model is loaded; its file does not have them.
struct SegmentLimits {
  int64_t max_tokens = 512;  // the most tokens of one pass
  int64_t max_sequences = 1;
  int64_t max_output_rows = 1;  // the most output rows of one pass
  int64_t max_context = 0;      // the most positions of one sequence
  int64_t kv_blocks = 0;        // the number of blocks in each layer's cache
  uint32_t kv_type_k = TRINE_DTYPE_F16;
  uint32_t kv_type_v = TRINE_DTYPE_F16;
  // How exactly devices have to compute: TRINE_NUMERICS_EXACT or TRINE_NUMERICS_FAST.
  uint32_t numerics = TRINE_NUMERICS_EXACT;
  bool embeddings = false;   // the last segment gives the normed rows instead of their logits
  bool hidden_rows = false;  // the last segment gives the normed rows and their logits
  int64_t branches = 0;      // sequences beyond those with room for a whole context
  // The host reads after each pass which experts tokens chose, also where it would not see that.
  bool count_experts = false;

  bool exact() const { return numerics == TRINE_NUMERICS_EXACT; }
  int64_t max_blocks_per_sequence() const {
    return (max_context + kBlockPositions - 1) / kBlockPositions;
  }
};

// A constant of the graph and the weight of the file that it stands for.
struct WeightUse {
  TensorId tensor = 0;
  const gguf::TensorInfo* info = nullptr;
  bool as_f32 = false;                 // read as f32, as norms and biases always are
  std::optional<PackedLayout> packed;  // the layout that the graph reads; nullopt: plain
};

// A state tensor of the graph, which is a layer's cache of keys or of values.
struct KvUse {
  TensorId tensor = 0;
  int64_t layer = 0;
  size_t number = 0;  // its index among the segment's caches; pieces share caches by this number
};

// The tensors that a run reads and writes. TRINE_NONE: the segment has no such tensor.
struct SegmentIo {
  TensorId tokens = TRINE_NONE;         // i32 [tokens]: segment with the embedding
  TensorId hidden_in = TRINE_NONE;      // f32 [n_embd, tokens]: segment without the embedding
  TensorId hidden_out = TRINE_NONE;     // f32 [n_embd, tokens]: segment without the head
  TensorId rope = TRINE_NONE;           // f32 [2 * pairs, tokens]
  TensorId rope_windowed = TRINE_NONE;  // f32 [2 * pairs, tokens]: windowed layers with own rope
  TensorId kv_slots = TRINE_NONE;       // i32 [tokens]: the KV slot of each token
  TensorId block_table = TRINE_NONE;    // i32 [blocks, sequences]
  TensorId q_offsets = TRINE_NONE;      // i32 [max_sequences + 1]
  TensorId kv_lengths = TRINE_NONE;     // i32 [sequences]
  TensorId output_rows = TRINE_NONE;    // i32 [rows], indices of tokens: last segment
  TensorId logits = TRINE_NONE;         // f32 [n_vocab, rows]: last segment
  TensorId embeddings = TRINE_NONE;     // f32 [n_embd, rows]: last segment, if asked for
};

// The indices of a run's parameters.
enum SegmentParam : uint32_t {
  kParamTokens,
  kParamSequences,
  kParamOutputRows,
  kParamKvPositions,
  kParams
};

// The end of a layer or of the embedding: its hidden state, and the index after its last op.
struct LayerEnd {
  int64_t layer = -1;  // -1: the embedding
  size_t op = 0;
  TensorId hidden = 0;
};

// Divides the experts of layers: home, the device of a layer, has a few of its experts in slots,
// and another device computes the rest.
struct ExpertDivision {
  std::map<int64_t, int64_t> slots;  // [layer]: how many; a layer that is missing is not divided
  // Home reads all experts where the other device reads them, and there are no slots. Then `slots`
  // says how many of the experts home would compute if tokens chose all of them.
  bool in_place = false;
  // Returns a tensor that stands for the first `count` experts of a weight.
  std::function<const gguf::TensorInfo*(const gguf::TensorInfo& all, int64_t count)> first_experts;

  int64_t SlotsOf(int64_t layer) const {
    const auto found = slots.find(layer);
    return found == slots.end() ? 0 : found->second;
  }
};

// The op by which the host divides the experts that tokens chose: ids -> ids for home (numbers of
// slots), ids for the rest (numbers of experts). An entry is -1 in the list of the device that does
// not compute it. The host does this between steps (split_stage.h); no device sees the op.
inline constexpr uint32_t kDivideIds = 0x80000001u;

// A divided layer in a graph: the experts are there twice, with the weights of the slots and with
// all weights, and their results are added. The result of an id that is -1 is zeros, and a sum with
// 0 has the bits of the other number, because canonical numbers have no -0.
struct DividedLayer {
  int64_t layer = 0;
  int64_t experts = 0;  // of the layer
  int64_t slots = 0;
  bool in_place = false;  // as in ExpertDivision
  TensorId ids = TRINE_NONE, home_ids = TRINE_NONE, rest_ids = TRINE_NONE;
  struct Weight {
    const gguf::TensorInfo* all = nullptr;
    const gguf::TensorInfo* in_slots = nullptr;
    bool as_f32 = false;
  };
  std::vector<Weight> weights;
};

// The ids of the experts that tokens choose in a layer.
struct RoutedLayer {
  int64_t layer = 0;
  int64_t experts = 0;  // of the layer
  int64_t used = 0;     // how many of them a token chooses
  TensorId ids = TRINE_NONE;
};

// The graph of a segment, and everything that is known about its tensors.
struct SegmentGraph {
  OpGraph graph;
  SegmentIo io;
  std::vector<WeightUse> weights;
  std::vector<KvUse> caches;
  std::vector<LayerEnd> ends;
  std::vector<RoutedLayer> routed;  // the layers with experts, in the order of their ops
  std::vector<DividedLayer> divided;
};

}  // namespace trine
