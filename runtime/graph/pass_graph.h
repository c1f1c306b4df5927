// What a forward pass of a model is made of: nodes in the order in which they run, the values they
// read and write, and which node's value each of them reads. A node is an op, or a layer, as the
// model's taps are (TapLevel); before the first layer stands the embedding, behind the last one the
// head. The same for every pass: only sizes differ, by the pass's tokens and rows. Does not change
// once made.
#ifndef TRINE_RUNTIME_GRAPH_PASS_GRAPH_H_
#define TRINE_RUNTIME_GRAPH_PASS_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/model/graph_taps.h"
#include "runtime/model/model.h"
#include "runtime/model/segment_graph.h"

namespace trine {

// Sizes of one pass: of one sequence.
struct PassSizes {
  int64_t tokens = 0;
  int64_t rows = 0;  // of output
};

// A number of bytes, as a pass's sizes give it.
struct PassBytes {
  uint64_t fixed = 0, per_token = 0, per_row = 0;
  uint64_t At(const PassSizes& s) const {
    return fixed + per_token * static_cast<uint64_t>(s.tokens) +
           per_row * static_cast<uint64_t>(s.rows);
  }
};

// Where a value lies in a pass's block.
struct ValuePlace {
  PassBytes offset, bytes;
};

struct GraphValue {
  static constexpr size_t kInput = static_cast<size_t>(-1);
  static constexpr size_t kNoCache = static_cast<size_t>(-1);

  std::string name;      // "tokens", or the op's name
  size_t node = kInput;  // that writes it
  size_t op = 0;         // likewise
  uint32_t output = 0;   // of the op
  TensorId SegmentIo::*input = nullptr;
  trine_tensor tensor{};        // as the whole graph has it
  size_t cache = kNoCache;      // of rows of a cache: its number in the model
  std::vector<size_t> readers;  // nodes of the same pass

  bool is_cache() const { return cache != kNoCache; }
};

struct GraphNode {
  size_t begin = 0, end = 0;   // ops
  int64_t layer = -1;          // -1: before the first; as many as the model has: behind the last
  size_t stage = 0;            // of the model
  std::vector<size_t> reads;   // values, of its own pass; those of caches not among them
  std::vector<size_t> writes;  // values
  std::vector<size_t> stores, attends;  // caches, by their numbers
};

struct GraphCache {
  size_t stage = 0;
  size_t number = 0;  // in the stage
  trine_tensor tensor{};
};

class PassGraph {
 public:
  // Of a model with taps.
  static absl::StatusOr<std::unique_ptr<PassGraph>> Create(const Model& model);

  TapLevel level() const { return level_; }
  const SegmentGraph& whole() const { return whole_; }
  const std::vector<GraphValue>& values() const { return values_; }
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const std::vector<GraphCache>& caches() const { return caches_; }
  // Values that nodes write, in the order of the model's taps.
  const std::vector<size_t>& taps() const { return taps_; }
  size_t InputOf(TensorId SegmentIo::*input) const;                    // kInput where there is none
  const std::vector<bool>& seen_slots() const { return seen_slots_; }  // that values lie in
  // The nodes of a layer: [first, second). -1 and n_layers as in GraphNode.
  std::pair<size_t, size_t> NodesOfLayer(int64_t layer) const;

  // "matmul blk.3.attn_q.weight".
  std::string OpName(size_t op) const;
  int64_t LayerOfOp(size_t op) const;

  // Where a pass's values lie in its block, one behind the other; of caches they take nothing.
  const ValuePlace& PlaceOf(size_t value) const { return places_[value]; }
  uint64_t Bytes(size_t value, const PassSizes& sizes) const {
    return places_[value].bytes.At(sizes);
  }
  uint64_t BlockBytes(const PassSizes& sizes) const { return block_bytes_.At(sizes); }

 private:
  PassGraph() = default;
  void AddInputs();
  void AddNodes();
  void AddTaps();
  absl::Status Connect();
  absl::Status ConnectOp(size_t node, size_t op, std::vector<size_t>* slot_values,
                         std::vector<bool>* inside);
  void PlaceValues();
  PassBytes BytesOf(const GraphValue& value) const;

  TapLevel level_ = TapLevel::kNone;
  SegmentGraph whole_;
  int64_t n_layers_ = 0;
  std::vector<GraphValue> values_;
  std::vector<GraphNode> nodes_;
  std::vector<GraphCache> caches_;
  std::vector<size_t> taps_;
  std::vector<bool> seen_slots_;
  std::vector<ValuePlace> places_;  // by value
  PassBytes block_bytes_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_PASS_GRAPH_H_
