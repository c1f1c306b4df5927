// Cuts a segment into pieces that run on several devices. Each piece has its own graph. The steps
// say which pieces run at the same time and which values are moved after them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/split/piece_graph.h"
#include "runtime/model/split/tensor_places.h"

namespace trine {

// Memory of a device for a value that is used outside of a piece, or for some of its columns.
// Places of a device whose lifetimes do not overlap share a buffer.
struct SplitPlace {
  size_t device = 0;
  size_t buffer = 0;  // the index of the buffer among the device's
  uint64_t bytes = 0;
};

// The graph that one device runs in one step.
struct GraphPiece {
  size_t device = 0;
  SegmentGraph graph;
  std::vector<std::pair<TensorId, size_t>> io;  // tensors of IO slots, with their places
};

// Columns [begin, end) of a value, computed from rows [begin, end) of a weight.
struct ValuePart {
  size_t place = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool in_whole = true;  // the place holds all columns; false: only [begin, end)
};

// Says that the ids of chosen experts are divided (kDivideIds) while they are moved.
struct DividedIds {
  size_t layer = 0;  // an index of SegmentGraph::divided
  bool home = true;  // the ids for home; false: for the rest
};

// Says that a value is the ids of the experts that tokens chose in a layer of the model, which the
// host counts. `always`: also where the host would not see them.
struct CountedIds {
  int64_t layer = 0;
  bool always = false;
};

// Collects the parts of a value and copies the whole value to the places in `to`. If there are no
// such places, the value may still be read, checked or counted.
struct ValueMove {
  uint32_t dtype = TRINE_DTYPE_F32;
  int64_t id_limit = 0;  // for i32: valid values are below it; 0: values are not checked
  int64_t width = 0;     // the number of columns, of 4 bytes each
  Shape outer;           // the other dimensions; a negative one names a parameter
  std::vector<ValuePart> from;
  std::vector<size_t> to;  // places
  std::optional<DividedIds> divided;
  std::optional<CountedIds> counted;
};

// Pieces that run at the same time, then moves of their values.
struct SplitStep {
  std::vector<size_t> pieces;  // at most one for each device
  std::vector<ValueMove> moves;
};

// An input of the batch, and the places to write it to.
struct SplitInput {
  TensorId SegmentIo::*which;
  std::vector<size_t> places;
};

// A segment in pieces: graphs, memory and the order in which all of it runs.
struct GraphSplit {
  WeightSlices slices;  // the pieces' weights point into it
  std::vector<GraphPiece> pieces;
  std::vector<SplitStep> steps;
  std::vector<SplitPlace> places;
  std::vector<std::vector<uint64_t>> buffers;  // by device: the sizes of its buffers
  std::vector<SplitInput> inputs;
  ValueMove output;                 // the segment's output; `to` is empty
  std::optional<ValueMove> hidden;  // the rows that logits are computed from, if they are wanted
};

// Cuts `whole` into pieces. `owners` has an entry for each op. `sees_rows[device]`: the device
// writes its rows of a value into its place for the whole value, if it has one; otherwise its rows
// get their own place. REQUIRES: whole.graph.Finish() has not been called; only ops with HasRows
// have several owners; ops that touch a cache, and those that choose experts of divided layers,
// belong to the main device.
GraphSplit SplitGraph(const SegmentGraph& whole, const std::vector<OpOwners>& owners,
                      const std::vector<bool>& sees_rows);

}  // namespace trine
