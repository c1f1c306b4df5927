// Builds the graph of a piece: some ops of a segment, or some rows of them, on one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/model/arch/segment_graph.h"

namespace trine {

// Makes tensors out of rows of the file's weights. Each slice has a unique name, because weights
// are found by name. The addresses of slices do not change.
class WeightSlices {
 public:
  // Returns values [begin, end) of a vector, or rows [begin, end) of a matrix.
  const gguf::TensorInfo* Slice(const gguf::TensorInfo& tensor, int64_t begin, int64_t end);

 private:
  struct Item {
    std::string name;
    gguf::TensorInfo info;
  };
  std::deque<Item> items_;
  std::map<std::tuple<const gguf::TensorInfo*, int64_t, int64_t>, const gguf::TensorInfo*> known_;
};

// Returns whether devices can share an op's rows: the op is a product with a matrix of the file,
// and its result has its own slot.
bool HasRows(const SegmentGraph& segment, size_t op);

// Collects the ops of one piece, in the order in which they are added.
class PieceGraph {
 public:
  // `is_io[slot]`: the slot is used outside of the piece. All arguments must outlive this object.
  PieceGraph(const SegmentGraph& whole, const std::vector<bool>& is_io, WeightSlices* slices);

  void AddOp(size_t op);
  // Adds rows [begin, end) of an op, and returns the tensor that they are written to. That is a
  // part of the whole result's slot or, if `apart`, a separate tensor.
  TensorId AddRows(size_t op, int64_t begin, int64_t end, bool apart);

  // Returns the piece's tensor for each IO slot that it uses: [slot of the whole graph].
  const std::map<SlotId, TensorId>& io() const { return io_; }
  // Returns the graph. Nothing may be added afterwards.
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
