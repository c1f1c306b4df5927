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
#include "runtime/graph/pass_graph.h"
#include "runtime/model/model.h"

namespace trine {

class Window {
 public:
  // Nodes [begin, end), all of one stage.
  static absl::StatusOr<std::unique_ptr<Window>> Create(const PassGraph& graph, size_t begin,
                                                        size_t end, Model* model);

  // A value of the graph, and the tensor that has it in the plan.
  struct Port {
    size_t value = 0;
    TensorId tensor = 0;
  };
  const std::vector<Port>& inputs() const { return inputs_; }    // to be written before a run
  const std::vector<Port>& outputs() const { return outputs_; }  // there after it
  Segment& segment() { return *segment_; }
  uint64_t bytes() const { return segment_->needs().scratch_bytes + segment_->needs().io_bytes; }

 private:
  Window() = default;

  std::vector<Port> inputs_, outputs_;
  std::unique_ptr<Segment> segment_;
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

 private:
  struct Entry {
    std::unique_ptr<Window> window;
    uint64_t used = 0;
  };

  const PassGraph& graph_;
  Model* const model_;
  const uint64_t most_bytes_;
  uint64_t bytes_ = 0, uses_ = 0;
  std::map<std::pair<size_t, size_t>, Entry> windows_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_WINDOW_H_
