// Runs a small plan on a device again and again to measure its time. The bytes of its weights are
// ordinary numbers in every block format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/cost_model.h"
#include "dispatch/exec/op_graph.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"

namespace trine {

// The layout and the memory of a plan's weights.
enum class TimedWeights {
  kPacked,    // in the device's own layout, if it has one
  kPlain,     // in the layout of the file
  kStreamed,  // in the layout of the file, in the host's memory
};

class TimedPlan {
 public:
  // Records a plan. `weights` lists the graph's constants, each the only tensor of its slot; each
  // gets its own memory. State is zeros. Returns UNIMPLEMENTED if `how` is kStreamed and the device
  // can't stream.
  static absl::StatusOr<std::unique_ptr<TimedPlan>> Create(
      std::shared_ptr<Device> device, OpGraph graph, const std::vector<TensorId>& weights,
      TimedWeights how = TimedWeights::kPacked);

  Segment& segment() { return *segment_; }
  // Measures one round of runs, as TimeRound does. Returns the nanoseconds of a run.
  absl::StatusOr<double> Round(const std::vector<int64_t>& params, double budget_ns);

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  using HostMemory = std::unique_ptr<void, Free>;

  TimedPlan() = default;
  absl::StatusOr<Buffer> Import(const std::shared_ptr<Device>& device,
                                const std::vector<std::byte>& image);

  std::vector<HostMemory> host_;  // outlives the buffers that import it
  std::vector<Buffer> memory_;    // outlives the segment
  std::unique_ptr<Segment> segment_;
};

// Builds layers of a common shape as one graph, to measure how long whole layers take. A layer has
// a norm, queries, keys and values, attention, and a gated network four times as wide.
class LayerStack {
 public:
  // The pass has `tokens` tokens of one sequence, which follow the sequence's other positions.
  LayerStack(uint32_t type, int64_t width, int layers, int64_t tokens);

  const OpGraph& graph() const { return graph_; }
  PassShape Pass() const;
  // Records the layers on a device. Call it once: the graph is moved into the plan.
  absl::Status Record(const std::shared_ptr<Device>& device);
  // Measures one round of runs, as TimedPlan::Round does. REQUIRES: they are recorded.
  absl::StatusOr<double> Round(double budget_ns);

 private:
  std::vector<int64_t> Params() const;
  TensorId Io(uint32_t type, const Shape& shape) {
    return graph_.AddTensor(TRINE_ROLE_IO, type, shape);
  }
  TensorId Product(TensorId x, int64_t from, int64_t to);
  TensorId Norm(TensorId x);
  TensorId Rotated(TensorId x, int64_t heads);
  TensorId Stored(TensorId x, int64_t heads);
  TensorId Sum(TensorId a, TensorId b);
  TensorId Layer(TensorId x);

  const uint32_t type_;
  const int64_t width_, tokens_;
  OpGraph graph_;
  int64_t m_ = 0;
  TensorId rope_ = 0, slots_ = 0, table_ = 0, offsets_ = 0, lengths_ = 0;
  std::vector<TensorId> weights_;
  std::unique_ptr<TimedPlan> plan_;
};

}  // namespace trine
