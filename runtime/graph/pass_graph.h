// Describes a forward pass of a model: its nodes in the order in which they run, the values that
// they read and write, and which node writes each value. A node is an op or a layer, depending on
// the model's taps (TapLevel). The embedding precedes the first layer, and the head follows the
// last. The graph is the same for every pass; only sizes depend on the pass's tokens and rows.
// Immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/model/arch/graph_taps.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/run/model.h"

namespace trine {

// The sizes of one pass of one sequence.
struct PassSizes {
  int64_t tokens = 0;
  int64_t rows = 0;  // rows of output
};

// A number of bytes that depends on a pass's sizes.
struct PassBytes {
  uint64_t fixed = 0, per_token = 0, per_row = 0;
  uint64_t At(const PassSizes& s) const {
    return fixed + per_token * static_cast<uint64_t>(s.tokens) +
           per_row * static_cast<uint64_t>(s.rows);
  }
  bool operator==(const PassBytes&) const = default;
};

// The place of a value in a pass's block.
struct ValuePlace {
  PassBytes offset, bytes;
};

struct GraphValue {
  static constexpr size_t kInput = static_cast<size_t>(-1);
  static constexpr size_t kNoCache = static_cast<size_t>(-1);

  std::string name;                      // "tokens", or the op's name
  size_t node = kInput;                  // the node that writes it
  size_t op = 0;                         // the op that writes it
  uint32_t output = 0;                   // which of the op's outputs it is
  TensorId SegmentIo::*input = nullptr;  // the input of a segment that it is; null: an op's output
  trine_tensor tensor{};                 // the tensor in the graph of the whole model
  size_t cache = kNoCache;      // the model's cache, by number, that has the value in its rows
  std::vector<size_t> readers;  // nodes of the same pass that read it

  bool is_cache() const { return cache != kNoCache; }
};

struct GraphNode {
  size_t begin = 0, end = 0;   // the node's ops: [begin, end)
  int64_t layer = -1;          // -1: before the first layer; the number of layers: after the last
  size_t stage = 0;            // the model's stage
  std::vector<size_t> reads;   // values of its own pass that it reads, except values in caches
  std::vector<size_t> writes;  // values that it writes
  std::vector<size_t> stores, attends;  // numbers of the caches that it writes and reads
};

struct GraphCache {
  size_t stage = 0;
  size_t number = 0;  // the cache's number in the stage
  trine_tensor tensor{};
};

class PassGraph {
 public:
  // REQUIRES: the model has taps.
  static absl::StatusOr<std::unique_ptr<PassGraph>> Create(const Model& model);

  TapLevel level() const { return level_; }
  const SegmentGraph& whole() const { return whole_; }
  const std::vector<GraphValue>& values() const { return values_; }
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const std::vector<GraphCache>& caches() const { return caches_; }
  // The values that nodes write, in the order of the model's taps.
  const std::vector<size_t>& taps() const { return taps_; }
  // Returns the value that is this input of a segment, or kInput if there is none.
  size_t InputOf(TensorId SegmentIo::*input) const;
  // Returns, for each slot of the whole graph, whether it holds a value of values().
  const std::vector<bool>& seen_slots() const { return seen_slots_; }
  // Returns the nodes of a layer: [first, second). -1 and n_layers are as in GraphNode.
  std::pair<size_t, size_t> NodesOfLayer(int64_t layer) const;

  // Returns a name such as "matmul blk.3.attn_q.weight".
  std::string OpName(size_t op) const;
  int64_t LayerOfOp(size_t op) const;

  // Returns the place of a value in a pass's block, in which values follow each other. Values in
  // caches take no room.
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
  absl::Status ConnectOp(size_t node, size_t op, const std::vector<size_t>& slot_values,
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
