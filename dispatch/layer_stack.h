// Layers of a common shape (norm, queries, keys and values, attention, a gated network four times
// as wide) as one graph: what whole layers take is measured with it.
#ifndef TRINE_DISPATCH_LAYER_STACK_H_
#define TRINE_DISPATCH_LAYER_STACK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost_model.h"
#include "dispatch/op_graph.h"
#include "plugins/handles.h"

namespace trine {

class LayerStack {
 public:
  // `tokens` behind others, of one sequence.
  LayerStack(uint32_t type, int64_t width, int layers, int64_t tokens);

  const OpGraph& graph() const { return graph_; }
  PassShape Pass() const;
  // In nanoseconds, of one run. Once: the graph goes to the plan.
  absl::StatusOr<double> Time(const std::shared_ptr<Device>& device, double seconds);

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
};

}  // namespace trine

#endif  // TRINE_DISPATCH_LAYER_STACK_H_
