// A run of nodes of one pass as a plan of its own, on the device that has their layers: recorded
// once, used for every pass. Weights and caches are the model's, where they lie. Not thread-safe;
// the model and the graph outlive it.
#ifndef TRINE_RUNTIME_GRAPH_WINDOW_H_
#define TRINE_RUNTIME_GRAPH_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/segment.h"
#include "plugins/handles.h"
#include "runtime/graph/pass_graph.h"
#include "runtime/model/model.h"

namespace trine {

inline constexpr size_t kNoPass = static_cast<size_t>(-1);

// The inputs of a pass on one device: where it is, and which tokens it has. All windows on the
// device read them in the same place, so that they are brought there once for a pass.
class GraphInputs {
 public:
  static absl::StatusOr<std::unique_ptr<GraphInputs>> Create(const PassGraph& graph,
                                                             std::shared_ptr<Device> device);

  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t Find(size_t value) const;  // its number here, or kNone
  trine_span SpanOf(size_t number, uint64_t bytes) const {
    return inputs_[number].buffer.Span(0, bytes);
  }

  // One of them, from a pass's block.
  absl::Status Bind(size_t number, size_t pass, const PassSizes& sizes, const std::byte* block);
  void Forget();

 private:
  struct Input {
    size_t value;
    ValuePlace place;
    Buffer buffer;
    size_t pass = kNoPass;  // whose it is
  };
  GraphInputs() = default;

  std::vector<Input> inputs_;
};

class Window {
 public:
  // Nodes [begin, end), all of one stage. `inputs`: of its device; outlive it.
  static absl::StatusOr<std::unique_ptr<Window>> Create(const PassGraph& graph, size_t begin,
                                                        size_t end, GraphInputs* inputs,
                                                        Model* model);

  // A value of the graph, and the tensor that has it in the plan. All that a run needs to know of
  // it lies together: since the last one the weights of a layer have gone through the caches.
  struct Port {
    size_t value = 0;
    TensorId tensor = 0;
    ValuePlace place;
    void* host = nullptr;  // where the CPU sees it, if it does
  };
  // Before a run: what it reads of the inputs of its pass.
  absl::Status BindGraphInputs(size_t pass, const PassSizes& sizes, const std::byte* block);
  const std::vector<Port>& inputs() const { return inputs_; }    // to be written before a run
  const std::vector<Port>& outputs() const { return outputs_; }  // there after it
  Segment& segment() { return *segment_; }
  // Whether the inputs are those that a pass had after so many changes: then they need not be
  // written.
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
  std::vector<size_t> bound_;  // of them, by number
  std::vector<Port> inputs_, outputs_;
  std::unique_ptr<Segment> segment_;
  size_t held_pass_ = kNoPass;
  uint64_t held_changes_ = 0;
};

// Windows that have been asked for, as long as they are small enough together; those that were not
// used for longest go first.
class Windows {
 public:
  Windows(const PassGraph& graph, Model* model, uint64_t most_bytes)
      : graph_(graph), model_(model), most_bytes_(most_bytes) {}

  // Until the next call.
  absl::StatusOr<Window*> Get(size_t begin, size_t end);
  size_t size() const { return windows_.size(); }
  // Inputs of passes may be others than they were.
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
  std::pair<size_t, size_t> last_nodes_;                          // that were asked for
  Window* last_ = nullptr;                                        // with them; null: none is there
  std::map<const Device*, std::unique_ptr<GraphInputs>> inputs_;  // before what reads them
  std::map<std::pair<size_t, size_t>, Entry> windows_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_WINDOW_H_
