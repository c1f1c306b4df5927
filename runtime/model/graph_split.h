// A segment cut into pieces that run on several devices: each piece is a graph of its own, and a
// schedule says which run at the same time and which values are moved between two steps.
#ifndef TRINE_RUNTIME_MODEL_GRAPH_SPLIT_H_
#define TRINE_RUNTIME_MODEL_GRAPH_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/model/op_schedule.h"
#include "runtime/model/piece_graph.h"
#include "runtime/model/segment_graph.h"

namespace trine {

// Memory of a device for a value that is seen outside of a piece, or for some rows of one. Places
// of a device whose lives do not overlap have one buffer.
struct SplitPlace {
  size_t device = 0;
  size_t buffer = 0;  // of the device's
  uint64_t bytes = 0;
};

struct GraphPiece {
  size_t device = 0;
  SegmentGraph graph;
  std::vector<std::pair<TensorId, size_t>> io;  // tensors of IO slots, and their places
};

// Columns [begin, end) of a value: what rows of a weight give.
struct ValuePart {
  size_t place = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool in_whole = true;  // the place has room for all columns; else for these alone
};

// A value as its parts have it, and where all of it has to be. One that is there already may still
// be looked at.
struct ValueMove {
  uint32_t dtype = TRINE_DTYPE_F32;
  int64_t id_limit = 0;  // of i32: those that mean something are below
  int64_t width = 0;     // columns: values of 4 bytes
  Shape outer;           // the other dimensions; a negative one is a parameter
  std::vector<ValuePart> from;
  std::vector<size_t> to;  // places
};

struct SplitStep {
  std::vector<size_t> pieces;  // at most one for each device
  std::vector<ValueMove> moves;
};

// One of the batch's inputs, and the places that have it.
struct SplitInput {
  TensorId SegmentIo::*which;
  std::vector<size_t> places;
};

struct GraphSplit {
  WeightSlices slices;  // which the pieces' weights point to
  std::vector<GraphPiece> pieces;
  std::vector<SplitStep> steps;
  std::vector<SplitPlace> places;
  std::vector<std::vector<uint64_t>> buffers;  // by device: their sizes
  std::vector<SplitInput> inputs;
  ValueMove output;                 // of the segment, with no place to go to
  std::optional<ValueMove> hidden;  // the rows that logits are made of, where both are wanted
};

// `whole` is not finished. `owners` has an entry for each op; only rows that HasRows are shared,
// and whatever touches a cache is the main device's. `sees_rows[device]`: the device writes its
// rows to where the whole value is, if it needs that; else its rows come apart, as everybody's.
GraphSplit SplitGraph(const SegmentGraph& whole, const std::vector<OpOwners>& owners,
                      const std::vector<bool>& sees_rows);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_GRAPH_SPLIT_H_
