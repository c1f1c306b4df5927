// A window is a plan that runs some consecutive nodes of a pass on the device that has their
// layers. It is recorded once and used for every pass. It uses the model's weights and caches in
// their places. Not thread-safe; the model and the graph must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "runtime/graph/pass_graph.h"
#include "runtime/model/run/model.h"

namespace trine {

inline constexpr size_t kNoPass = static_cast<size_t>(-1);

// The inputs of a pass on one device: its place and its tokens. All windows on the device read them
// from the same memory, so they are copied there once per pass.
class GraphInputs {
 public:
  static absl::StatusOr<std::unique_ptr<GraphInputs>> Create(const PassGraph& graph,
                                                             std::shared_ptr<Device> device);

  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t Find(size_t value) const;  // the index in inputs_, or kNone
  trine_span SpanOf(size_t number, uint64_t bytes) const {
    return inputs_[number].buffer.Span(0, bytes);
  }

  // Copies one input from a pass's block, unless it is there already.
  absl::Status Bind(size_t number, size_t pass, const PassSizes& sizes, const std::byte* block);
  void Forget();

 private:
  struct Input {
    size_t value;
    ValuePlace place;
    Buffer buffer;
    size_t pass = kNoPass;  // the pass whose input the buffer has
  };
  GraphInputs() = default;

  std::vector<Input> inputs_;
};

class Window {
 public:
  // Records the plan. Nodes [begin, end) must be of one stage. `inputs` must be for the stage's
  // device and outlive the window.
  static absl::StatusOr<std::unique_ptr<Window>> Create(const PassGraph& graph, size_t begin,
                                                        size_t end, GraphInputs* inputs,
                                                        Model* model);

  // A value of the graph, and the plan's tensor for it. Everything that a run needs to know about
  // the value is together here, because each run reads it from memory: since the last run, a
  // layer's weights have driven it out of the CPU's caches.
  struct Port {
    size_t value = 0;
    TensorId tensor = 0;
    ValuePlace place;
    void* host = nullptr;  // null: the CPU can't access it
  };
  // Sets the inputs of the pass that this window reads. Call it before a run.
  absl::Status BindGraphInputs(size_t pass, const PassSizes& sizes, const std::byte* block);
  const std::vector<Port>& inputs() const { return inputs_; }    // written before a run
  const std::vector<Port>& outputs() const { return outputs_; }  // valid after a run
  Segment& segment() { return *segment_; }
  // Returns whether the plan's memory still holds the inputs of `pass`, so that they need not be
  // written. `changes` is the graph's count of changes.
  bool Holds(size_t pass, uint64_t changes) const {
    return held_pass_ == pass && held_changes_ == changes;
  }
  void SetHeld(size_t pass, uint64_t changes) {
    held_pass_ = pass;
    held_changes_ = changes;
  }
  uint64_t bytes() const { return segment_->needs().scratch_bytes + segment_->needs().io_bytes; }

 private:
  Window() = default;

  GraphInputs* graph_inputs_ = nullptr;
  std::vector<size_t> bound_;  // indices of the inputs that it reads
  std::vector<Port> inputs_, outputs_;
  std::unique_ptr<Segment> segment_;
  size_t held_pass_ = kNoPass;
  uint64_t held_changes_ = 0;
};

// Makes windows on demand and keeps them, up to a total size. Drops the least recently used first.
class Windows {
 public:
  Windows(const PassGraph& graph, Model* model, uint64_t most_bytes)
      : graph_(graph), model_(model), most_bytes_(most_bytes) {}

  // Returns a window that is valid until the next call.
  absl::StatusOr<Window*> Get(size_t begin, size_t end);
  size_t size() const { return windows_.size(); }
  // Call it when the inputs of passes may have changed: windows copy them again.
  void ForgetInputs();

 private:
  struct Entry {
    std::unique_ptr<Window> window;
    uint64_t used = 0;
  };

  const PassGraph& graph_;
  Model* const model_;
  const uint64_t most_bytes_;
  uint64_t bytes_ = 0, uses_ = 0;
  std::pair<size_t, size_t> last_nodes_;  // the arguments of the last Get
  Window* last_ = nullptr;                // the result of the last Get; null: none
  // Declared before windows_, because they must outlive the windows that read them.
  std::map<const Device*, std::unique_ptr<GraphInputs>> inputs_;
  std::map<std::pair<size_t, size_t>, Entry> windows_;
};

}  // namespace trine
