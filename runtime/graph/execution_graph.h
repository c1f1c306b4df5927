// Keeps a model's forward passes, so that they can be inspected, run again in part, changed and
// undone.
//
// Time is counted in passes: pass t is the t-th piece of the prompt or generated token of one
// sequence. Each pass has the nodes of the PassGraph, and a block of the arena with the values that
// these nodes read and wrote. Node n of pass t has the number t * nodes_per_pass() + n in the
// graph. Keys and values are in the model's caches, in the rows of the pass's positions, and are
// valid as long as the pass exists. The graph has no copy of the model's weights.
//
// Dependencies follow from the ops. A node depends on the nodes of its own pass whose values it
// reads. If it reads a cache, it also depends on all nodes that stored something there before, in
// this pass and in earlier passes. Changing a value makes the nodes that read it dirty, and no
// other nodes.
//
// Not thread-safe. Nothing else may run the model while the graph exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/graph/arena.h"
#include "runtime/graph/pass_graph.h"
#include "runtime/graph/window.h"
#include "runtime/model/run/kv_blocks.h"
#include "runtime/model/run/model.h"

namespace trine {

struct GraphPass {
  int64_t position = 0;  // the position of the pass's first token
  PassSizes sizes;

  int64_t end() const { return position + sizes.tokens; }
};

class ExecutionGraph {
 public:
  // The model must have taps and be used by this graph alone. `plan_bytes` is the most memory that
  // plans of windows may take; the least recently used plans are dropped.
  static absl::StatusOr<std::unique_ptr<ExecutionGraph>> Create(std::shared_ptr<Model> model,
                                                                uint64_t plan_bytes = uint64_t{1}
                                                                                      << 30);

  const PassGraph& shape() const { return *shape_; }
  const Arena& arena() const { return arena_; }
  size_t passes() const { return passes_.size(); }
  const GraphPass& pass(size_t t) const { return passes_[t]; }
  int64_t positions() const { return positions_; }  // the position of the next pass
  size_t nodes_per_pass() const { return shape_->nodes().size(); }
  uint64_t NodeAt(size_t pass, size_t node) const { return pass * nodes_per_pass() + node; }

  // Adds a pass over these tokens: runs it with the model's own plans, and keeps the values of its
  // taps. `rows` has the indices of the tokens whose output is wanted, at least one. Returns
  // INVALID_ARGUMENT for tokens outside of the vocabulary and rows outside of the pass,
  // OUT_OF_RANGE for too many tokens.
  absl::Status Capture(std::span<const int32_t> tokens, std::span<const int32_t> rows);
  // Adds a pass over these tokens without running it. All its nodes are dirty.
  absl::Status Append(std::span<const int32_t> tokens, std::span<const int32_t> rows);

  // Runs nodes [begin, end) again, from the contents of the arena and the caches. Runs consecutive
  // nodes of a pass on one device as one plan. If the value of a dirty node changes, the nodes that
  // read it become dirty. Returns OUT_OF_RANGE for nodes that don't exist.
  absl::Status ExecuteWindow(uint64_t begin, uint64_t end);
  // Runs dirty nodes in order until there are none. A node that produces the same bits as before
  // does not make its readers dirty; but if it stores something in a cache, that is always taken to
  // have changed.
  absl::Status ExecuteDirty();
  bool IsDirty(uint64_t node) const;

  // Replaces a value, such as the tokens of a pass or a value that a node wrote, by `bytes`, whose
  // number must be the same.
  absl::Status Write(size_t pass, size_t value, std::span<const std::byte> bytes);
  // Returns a value of a pass, without gaps. For a value in a cache, returns the cache rows of the
  // pass's tokens, each with all heads.
  absl::StatusOr<std::vector<std::byte>> ReadBack(size_t pass, size_t value) const;
  // Returns a value of the last pass.
  absl::StatusOr<std::vector<std::byte>> ReadBack(size_t value) const;
  // Returns the place of a value in the arena: 0 bytes for a value in a cache.
  Handle HandleOf(size_t pass, size_t value) const;

  // Drops passes t and later with their nodes and values: goes back to the state after pass t - 1.
  // Takes the same time for any number of passes.
  void Regress(size_t t);
  // Keeps the first `position` positions and drops all passes that go beyond them. If a dropped
  // pass begins before `position`, its keys and values before `position` are kept. Returns
  // INVALID_ARGUMENT if there are fewer positions.
  absl::Status RegressTo(int64_t position);

  // Overwrites the values that nodes [begin, end) have written, in the arena and in the caches, and
  // makes nothing dirty. For tests: a value that is not computed again can't be right by chance.
  absl::Status Poison(uint64_t begin, uint64_t end);

  // Returns the plan that runs nodes [begin, end) of a pass, which must be of one stage. Valid
  // until the next call. After ExecuteWindow of these nodes it still has the inputs, so that it can
  // be run for a comparison.
  absl::StatusOr<Window*> PlanOf(size_t begin, size_t end) { return windows_->Get(begin, end); }
  uint64_t runs() const { return runs_; }  // the number of nodes that Execute... have run so far
  size_t plans() const { return windows_->size(); }
  Model& model() { return *model_; }

 private:
  ExecutionGraph(std::shared_ptr<Model> model, std::unique_ptr<PassGraph> shape,
                 uint64_t plan_bytes);

  absl::Status CheckPass(std::span<const int32_t> tokens, std::span<const int32_t> rows) const;
  // Adds a pass with its inputs set and all nodes clean.
  absl::Status Begin(std::span<const int32_t> tokens, std::span<const int32_t> rows);
  absl::Status RunModel();
  absl::Status RunPiece(size_t pass, size_t begin, size_t end);
  // Copies a value from a window to the arena. Returns whether the value has changed.
  absl::StatusOr<bool> Take(const Window::Port& port, const PassSizes& sizes, std::byte* block,
                            const Segment& segment);
  std::vector<int32_t> SlotsOf(size_t pass) const;
  uint64_t* Words(size_t pass) { return dirty_.data() + pass * words_; }
  bool IsDirty(size_t pass, size_t node) const {
    return (dirty_[pass * words_ + node / 64] >> (node % 64) & 1) != 0;
  }
  void SetDirty(size_t pass, size_t node, bool dirty);
  void CacheChanged(size_t pass, size_t node, size_t cache);
  template <class Function>  // calls f(pass, begin, end) for nodes that can run as one plan
  absl::Status EachPiece(uint64_t begin, uint64_t end, Function f);

  std::shared_ptr<Model> model_;
  std::unique_ptr<PassGraph> shape_;
  std::unique_ptr<Windows> windows_;
  std::shared_ptr<KvBlockPool> pool_;
  BlockTable blocks_;
  Arena arena_;
  std::vector<GraphPass> passes_;
  int64_t positions_ = 0;
  const size_t words_;                          // words of dirty bits for each pass
  std::vector<uint64_t> dirty_;                 // dirty bits by pass, then by node
  std::vector<std::vector<size_t>> attending_;  // by cache: the nodes that read the cache
  Pass pass_;                                   // reused for every run of the model
  std::vector<int64_t> params_;
  std::vector<std::byte> staging_;
  uint64_t changes_ = 1;  // counts changes to values in the arena
  uint64_t runs_ = 0;
};

}  // namespace trine
