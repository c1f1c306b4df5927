// A model's forward passes as they were, to be looked at, run again in part, changed, and taken
// back.
//
// Time is counted in passes: pass t is the t-th prompt chunk or token step of one sequence. Each
// has the nodes of the PassGraph, and a block of the arena with the values that they read and
// wrote; node n of pass t is number t * nodes_per_pass() + n of the graph. Values of keys and
// values lie in the model's caches, in the rows of the pass's positions, and are valid as long as
// the pass is there. Weights are the model's; the graph has no copy of any.
//
// What depends on what is known from the ops: a node depends on the nodes of its own pass whose
// values it reads, and through the caches on all that were stored there before, in this pass and in
// earlier ones. A value that is changed makes what reads it dirty, and nothing else.
//
// Not thread-safe, and nobody else runs the model meanwhile.
#ifndef TRINE_RUNTIME_GRAPH_EXECUTION_GRAPH_H_
#define TRINE_RUNTIME_GRAPH_EXECUTION_GRAPH_H_

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
#include "runtime/model/kv_blocks.h"
#include "runtime/model/model.h"

namespace trine {

// A pass of the graph.
struct GraphPass {
  int64_t position = 0;  // of its first token
  PassSizes sizes;

  int64_t end() const { return position + sizes.tokens; }
};

class ExecutionGraph {
 public:
  // Of a model with taps, for itself alone. `plan_bytes`: what plans of windows may take before old
  // ones are let go of.
  static absl::StatusOr<std::unique_ptr<ExecutionGraph>> Create(std::shared_ptr<Model> model,
                                                                uint64_t plan_bytes = uint64_t{1}
                                                                                      << 30);

  const PassGraph& shape() const { return *shape_; }
  const Arena& arena() const { return arena_; }
  size_t passes() const { return passes_.size(); }
  const GraphPass& pass(size_t t) const { return passes_[t]; }
  int64_t positions() const { return positions_; }  // that the next pass stands behind
  size_t nodes_per_pass() const { return shape_->nodes().size(); }
  uint64_t NodeAt(size_t pass, size_t node) const { return pass * nodes_per_pass() + node; }

  // Runs a pass over these tokens, with the model's own plans, and keeps what its taps hold.
  // `rows`: indices of tokens whose output is wanted, at least one. INVALID_ARGUMENT, OUT_OF_RANGE:
  // tokens that can't be, too many of them.
  absl::Status Capture(std::span<const int32_t> tokens, std::span<const int32_t> rows);
  // The same pass with nothing run yet: all its nodes are dirty.
  absl::Status Append(std::span<const int32_t> tokens, std::span<const int32_t> rows);

  // Runs nodes [begin, end) again, from what the arena and the caches hold: consecutive nodes of a
  // pass on one device as one plan. What a dirty one changes makes what reads that dirty.
  // OUT_OF_RANGE for nodes that are not there.
  absl::Status ExecuteWindow(uint64_t begin, uint64_t end);
  // Runs dirty nodes in their order until there are none. One that gives the bits it gave before
  // leaves what reads it as it is; but what it stored in a cache counts as changed.
  absl::Status ExecuteDirty();
  bool IsDirty(uint64_t node) const;

  // Gives a value other bytes, as many: the tokens of a pass, or what a node wrote.
  absl::Status Write(size_t pass, size_t value, std::span<const std::byte> bytes);
  // A value of a pass, packed; of a cache the rows of the pass's tokens, each with all heads.
  absl::StatusOr<std::vector<std::byte>> ReadBack(size_t pass, size_t value) const;
  // The same as its tensor is bound now: of the last pass.
  absl::StatusOr<std::vector<std::byte>> ReadBack(size_t value) const;
  // Where it lies in the arena; no bytes for those that lie in caches.
  Handle HandleOf(size_t pass, size_t value) const;

  // Forgets passes t and later: their nodes and values are gone, positions and bindings are those
  // that pass t - 1 left. Takes no longer the more there are.
  void Regress(size_t t);
  // To the first `position` positions. A pass that has positions on both sides goes, and its keys
  // and values before `position` stay. INVALID_ARGUMENT for more than there are.
  absl::Status RegressTo(int64_t position);

  // Overwrites what nodes [begin, end) have written, in the arena and in the caches, without
  // anybody knowing: what is not computed again can't pass for right. For tests.
  absl::Status Poison(uint64_t begin, uint64_t end);

  // The plan that runs nodes [begin, end) of a pass, of one stage; until the next call. For whoever
  // wants to compare: after ExecuteWindow it holds that one's inputs.
  absl::StatusOr<Window*> PlanOf(size_t begin, size_t end) { return windows_->Get(begin, end); }
  uint64_t runs() const { return runs_; }  // of nodes, by Execute..., so far
  size_t plans() const { return windows_->size(); }
  Model& model() { return *model_; }

 private:
  ExecutionGraph(std::shared_ptr<Model> model, std::unique_ptr<PassGraph> shape,
                 uint64_t plan_bytes);

  absl::Status CheckPass(std::span<const int32_t> tokens, std::span<const int32_t> rows) const;
  // Adds a pass whose inputs are there and whose nodes are clean.
  absl::Status Begin(std::span<const int32_t> tokens, std::span<const int32_t> rows);
  absl::Status RunModel();
  absl::Status RunPiece(size_t pass, size_t begin, size_t end);
  // Takes a value over from a window; whether it has changed.
  absl::StatusOr<bool> Take(const Window::Port& port, const PassSizes& sizes, std::byte* block,
                            const Segment& segment);
  std::vector<int32_t> SlotsOf(size_t pass) const;
  uint64_t* Words(size_t pass) { return dirty_.data() + pass * words_; }
  bool IsDirty(size_t pass, size_t node) const {
    return (dirty_[pass * words_ + node / 64] >> (node % 64) & 1) != 0;
  }
  void SetDirty(size_t pass, size_t node, bool dirty);
  void CacheChanged(size_t pass, size_t node, size_t cache);
  template <class Function>  // (pass, begin, end) of nodes that can go together
  absl::Status EachPiece(uint64_t begin, uint64_t end, Function f);

  std::shared_ptr<Model> model_;
  std::unique_ptr<PassGraph> shape_;
  std::unique_ptr<Windows> windows_;
  std::shared_ptr<KvBlockPool> pool_;
  BlockTable blocks_;
  Arena arena_;
  std::vector<GraphPass> passes_;
  int64_t positions_ = 0;
  const size_t words_;                          // of a pass's dirty bits
  std::vector<uint64_t> dirty_;                 // by pass, then node
  std::vector<std::vector<size_t>> attending_;  // by cache: the nodes that read it
  Pass pass_;                                   // the model's, used again and again
  std::vector<int64_t> params_;
  std::vector<std::byte> staging_;
  uint64_t changes_ = 1;  // of values in the arena that were there before
  uint64_t runs_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_EXECUTION_GRAPH_H_
