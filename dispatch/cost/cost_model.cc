#include "dispatch/cost/cost_model.h"

#include <algorithm>

#include "trine/backend_sdk.h"

namespace trine {
namespace {

class OpView {
 public:
  OpView(const OpGraph& graph, size_t op, const PassShape& pass)
      : graph_(graph), op_(graph.op(op)), pass_(pass) {}

  uint32_t kind() const { return op_.kind; }
  const trine_tensor& in(uint32_t i) const { return graph_.tensor(op_.in[i]); }
  const trine_tensor& out(uint32_t i) const { return graph_.tensor(op_.out[i]); }
  double positions() const { return pass_.positions; }

  double Dim(const trine_tensor& t, uint32_t i) const {
    if (i >= t.rank) return 1;
    const int64_t dim = t.dims[i];
    return static_cast<double>(dim >= 0 ? dim : pass_.params[static_cast<size_t>(-dim - 1)]);
  }
  double Values(const trine_tensor& t) const {
    return Dim(t, 0) * Dim(t, 1) * Dim(t, 2) * Dim(t, 3);
  }
  // Returns the number of activation values that the op reads and writes. Constants and state are
  // not counted: an op reads as much of a table or cache as it has activations.
  double ActivationValues() const {
    double values = 0;
    for (uint32_t i = 0; i < op_.n_out; ++i) values += OnePassOf(op_.out[i]);
    for (uint32_t i = 0; i < op_.n_in; ++i) {
      if (op_.in[i] != TRINE_NONE) values += OnePassOf(op_.in[i]);
    }
    return values;
  }
  template <class Attr>
  const Attr& attr() const {
    return *static_cast<const Attr*>(op_.attr);
  }

 private:
  double OnePassOf(TensorId id) const {
    const uint32_t role = graph_.slots()[graph_.SlotOf(id)].role;
    return role == TRINE_ROLE_CONSTANT || role == TRINE_ROLE_STATE ? 0 : Values(graph_.tensor(id));
  }

  const OpGraph& graph_;
  const trine_op& op_;
  const PassShape& pass_;
};

double RowBytes(const trine_tensor& weight) {
  return static_cast<double>(sdk::ValueBytes(weight.dtype, weight.dims[0]));
}

PredictedTime Product(const DeviceCosts& costs, const trine_tensor& weight, double rows,
                      double tokens) {
  PredictedTime time;
  const auto curve = costs.matmul.find(weight.dtype);
  if (curve == costs.matmul.end()) {
    time.unknown = true;
    return time;
  }
  time.ns = static_cast<double>(weight.dims[0]) * rows * curve->second.At(tokens);
  time.weight_bytes = RowBytes(weight) * rows;
  return time;
}

PredictedTime Matmul(const DeviceCosts& costs, const OpView& op) {
  PredictedTime time = Product(costs, op.in(0), op.Dim(op.in(0), 1), op.Dim(op.in(1), 1));
  time.ns += costs.matmul_ns;
  return time;
}

// Predicts moe_matmul. Each expert that any token chose is counted once, with the tokens that share
// it. The choice is not known, so it is assumed to be even.
PredictedTime MoeMatmul(const DeviceCosts& costs, const OpView& op, const ExpertPart& part) {
  const trine_tensor& weight = op.in(0);
  const trine_tensor& ids = op.in(2);
  const double chosen = op.Dim(ids, 0) * op.Dim(ids, 1) * part.choices;
  const double most = part.experts > 0 ? part.experts : op.Dim(weight, 2);
  const double experts = std::min(most, chosen);
  const double tokens = experts > 0 ? std::max(chosen / experts, 1.0) : 1;
  PredictedTime time = Product(costs, weight, op.Dim(weight, 1) * experts, tokens);
  time.ns += costs.matmul_ns;
  return time;
}

PredictedTime Attention(const DeviceCosts& costs, const OpView& op) {
  PredictedTime time;
  const double tokens = op.Dim(op.in(0), 2);
  const uint32_t window = op.attr<trine_attention_attr>().window;
  double positions = op.positions();
  if (window != 0) positions = std::min(positions, static_cast<double>(window));
  const double seen = positions * (op.Dim(op.in(0), 0) + op.Dim(op.out(0), 0));
  const double heads = op.Dim(op.in(0), 1), kv_heads = op.Dim(op.in(1), 2);
  time.ns = costs.attention_ns +
            seen * (heads * costs.attention.At(tokens) + kv_heads * costs.attention_kv_ns);
  time.unknown = costs.attention.empty();
  return time;
}

PredictedTime Small(const OpCost& cost, const OpView& op) {
  PredictedTime time;
  time.ns = cost.op_ns + cost.value_ns * op.ActivationValues();
  return time;
}

PredictedTime Corrected(PredictedTime time, const DeviceCosts& costs, double tokens) {
  time.ns *= costs.correction.Within(tokens);
  return time;
}

// Sums `predict(op)` over all ops.
template <class Predict>
PredictedTime Sum(const OpGraph& graph, Predict predict) {
  PredictedTime sum;
  for (size_t i = 0; i < graph.n_ops(); ++i) {
    const PredictedTime one = predict(i);
    sum.ns += one.ns;
    sum.weight_bytes += one.weight_bytes;
    sum.unknown = sum.unknown || one.unknown;
  }
  return sum;
}

}  // namespace

bool IsProduct(const OpGraph& graph, size_t op) {
  const uint32_t kind = graph.op(op).kind;
  if (kind != TRINE_OP_MATMUL && kind != TRINE_OP_MOE_MATMUL) return false;
  return graph.slots()[graph.SlotOf(graph.op(op).in[0])].role == TRINE_ROLE_CONSTANT;
}

double ProductFlops(const OpGraph& graph, size_t op, const PassShape& pass) {
  const OpView view(graph, op, pass);
  return 2 * static_cast<double>(view.in(0).dims[0]) * view.Values(view.out(0));
}

PredictedTime PredictOp(const DeviceCosts& costs, const OpGraph& graph, size_t op,
                        const PassShape& pass, const ExpertPart& part) {
  const OpView view(graph, op, pass);
  switch (view.kind()) {
    case TRINE_OP_MATMUL:
      return Matmul(costs, view);
    case TRINE_OP_MOE_MATMUL:
      return MoeMatmul(costs, view, part);
    case TRINE_OP_ATTENTION:
      return Attention(costs, view);
    case TRINE_OP_RMS_NORM:
    case TRINE_OP_LAYER_NORM:
      return Small(costs.norm, view);
    case TRINE_OP_ROPE:
      return Small(costs.rope, view);
    case TRINE_OP_GLU:
    case TRINE_OP_ACTIVATION:
    case TRINE_OP_SOFTCAP:
      return Small(costs.glu, view);
    default:
      return Small(costs.plain, view);
  }
}

PredictedTime PredictGraph(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                           double tokens) {
  const auto predict = [&](size_t op) { return PredictOp(costs, graph, op, pass); };
  return Corrected(Sum(graph, predict), costs, tokens);
}

PredictedTime PredictUnpacked(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                              double tokens) {
  const auto predict = [&](size_t op) {
    PredictedTime time = PredictOp(costs, graph, op, pass);
    if (IsProduct(graph, op)) time.ns *= costs.unpacked.Within(tokens);
    return time;
  };
  return Corrected(Sum(graph, predict), costs, tokens);
}

PredictedTime PredictBorrowed(const DeviceCosts& costs, BorrowedWeights weights,
                              const OpGraph& graph, size_t op, const PassShape& pass) {
  const OpView view(graph, op, pass);
  PredictedTime time = PredictOp(costs, graph, op, pass);
  const double tokens = view.Dim(view.in(1), view.in(1).rank - 1);
  time.ns *= costs.unpacked.Within(tokens);
  if (weights == BorrowedWeights::kStreamed) {
    // All experts are brought in, including those that no token chooses.
    const double rows = view.Values(view.in(0)) / view.Dim(view.in(0), 0);
    time.ns = std::max(time.ns, RowBytes(view.in(0)) * rows * costs.StreamByteNs());
  }
  time.ns += costs.run_ns + costs.in.Of(view.Values(view.in(1)) * sizeof(float)) +
             costs.out.Of(view.Values(view.out(0)) * sizeof(float));
  return time;
}

}  // namespace trine
