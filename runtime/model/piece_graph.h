// The graph of a piece: some ops of a segment, whole or a part of their rows, that run on one
// device.
#ifndef TRINE_RUNTIME_MODEL_PIECE_GRAPH_H_
#define TRINE_RUNTIME_MODEL_PIECE_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/model/segment_graph.h"

namespace trine {

// Rows of the weights of a file, as tensors of their own. Each has a name of its own, for what
// knows weights by that. Their addresses stay.
class WeightSlices {
 public:
  // Values [begin, end) of a vector, rows [begin, end) of a matrix.
  const gguf::TensorInfo* Slice(const gguf::TensorInfo& tensor, int64_t begin, int64_t end);

 private:
  struct Item {
    std::string name;
    gguf::TensorInfo info;
  };
  std::deque<Item> items_;
  std::map<std::tuple<const gguf::TensorInfo*, int64_t, int64_t>, const gguf::TensorInfo*> known_;
};

// Whether an op's rows can be shared out: a product with a matrix of the file, whose result has a
// slot of its own.
bool HasRows(const SegmentGraph& segment, size_t op);

class PieceGraph {
 public:
  // `is_io[slot]`: the slot is seen outside of the piece. All three outlive it.
  PieceGraph(const SegmentGraph& whole, const std::vector<bool>& is_io, WeightSlices* slices);

  void AddOp(size_t op);
  // Rows [begin, end) of it: into those values of the slot that has the whole result, or, `apart`,
  // into a tensor of their own, which is returned.
  TensorId AddRows(size_t op, int64_t begin, int64_t end, bool apart);

  // The tensor of each IO slot of the whole that the piece has, by its slot there.
  const std::map<SlotId, TensorId>& io() const { return io_; }
  // Ends it.
  SegmentGraph Take();

 private:
  TensorId Map(TensorId tensor);
  TensorId MapState(TensorId tensor);
  TensorId AddWeight(TensorId tensor, int64_t begin, int64_t end);
  TensorId Base(SlotId slot);

  const SegmentGraph& whole_;
  const std::vector<bool>& is_io_;
  WeightSlices* const slices_;
  SegmentGraph piece_;
  std::map<TensorId, TensorId> mapped_;
  std::map<SlotId, TensorId> bases_, io_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_PIECE_GRAPH_H_
