#include "plugins/conformance/oracle.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/reference/ops.h"
#include "trine/sdk/graph.h"

namespace trine::conformance {
namespace {

using reference::AllRows;
using reference::View;

// One op over the images, operand by operand.
class Operands {
 public:
  Operands(const GraphSpec& graph, const OpSpec& op, const std::vector<int64_t>& params,
           Images* images)
      : graph_(graph), op_(op), params_(params), images_(images) {}

  View In(size_t i) const { return Of(op_.in[i]); }
  View Out(size_t i) const { return Of(op_.out[i]); }
  std::optional<View> Optional(size_t i) const {
    if (i >= op_.in.size() || op_.in[i] == TRINE_NONE) return std::nullopt;
    return In(i);
  }
  template <class A>
  A Attr() const {
    A attr{};
    std::memcpy(&attr, op_.attr.data(), std::min(op_.attr.size(), sizeof(A)));
    return attr;
  }

 private:
  View Of(uint32_t index) const {
    const trine_tensor& t = graph_.tensors[index];
    const sdk::Dims dims = sdk::ResolveDims(t, params_.data());
    const sdk::Dims strides = sdk::ResolveStrides(t, dims);
    View view;
    view.data = (*images_)[t.slot].data() + t.offset;
    std::copy(dims.begin(), dims.end(), view.dims);
    std::copy(strides.begin(), strides.end(), view.strides);
    view.type = static_cast<quant::Type>(t.dtype);
    return view;
  }

  const GraphSpec& graph_;
  const OpSpec& op_;
  const std::vector<int64_t>& params_;
  Images* images_;
};

const View* Pointer(const std::optional<View>& view) { return view ? &*view : nullptr; }

void RunNorm(const Operands& o, bool layer) {
  const auto attr = o.Attr<trine_norm_attr>();
  const std::optional<View> weight = o.Optional(1), bias = o.Optional(2);
  const View y = o.Out(0);
  if (layer) {
    reference::LayerNorm(o.In(0), Pointer(weight), Pointer(bias), attr.eps, y, AllRows(y));
  } else {
    reference::RmsNorm(o.In(0), Pointer(weight), attr.eps, y, AllRows(y));
  }
}

void RunAttention(const Operands& o) {
  const auto attr = o.Attr<trine_attention_attr>();
  const std::optional<View> sinks = o.Optional(6);
  reference::AttentionInputs inputs;
  inputs.q = o.In(0);
  inputs.k = o.In(1);
  inputs.v = o.In(2);
  inputs.block_table = o.In(3);
  inputs.q_offsets = o.In(4);
  inputs.kv_lengths = o.In(5);
  inputs.sinks = Pointer(sinks);
  reference::AttentionParams params;
  params.scale = attr.scale;
  params.softcap = attr.softcap;
  params.window = attr.window;
  params.causal = (attr.flags & TRINE_ATTENTION_CAUSAL) != 0;
  const View y = o.Out(0);
  reference::Attention(inputs, params, y, AllRows(y));
}

void RunGlu(const Operands& o) {
  const auto attr = o.Attr<trine_glu_attr>();
  reference::GluParams params;
  params.kind = attr.activation == TRINE_ACT_SILU   ? reference::GluKind::kSilu
                : attr.activation == TRINE_ACT_GELU ? reference::GluKind::kGelu
                                                    : reference::GluKind::kClampedSwiglu;
  params.alpha = attr.alpha;
  params.limit = attr.limit;
  const View y = o.Out(0);
  reference::Glu(o.In(0), o.In(1), params, y, AllRows(y));
}

reference::ActivationKind KindOf(uint32_t activation) {
  switch (activation) {
    case TRINE_ACT_SILU:
      return reference::ActivationKind::kSilu;
    case TRINE_ACT_GELU:
      return reference::ActivationKind::kGelu;
    case TRINE_ACT_RELU:
      return reference::ActivationKind::kRelu;
    default:
      return reference::ActivationKind::kTanh;
  }
}

void RunRoute(const Operands& o) {
  const auto attr = o.Attr<trine_moe_route_attr>();
  reference::MoeRouteParams params;
  params.scoring = attr.scoring == TRINE_MOE_SOFTMAX   ? reference::MoeScoring::kSoftmax
                   : attr.scoring == TRINE_MOE_SIGMOID ? reference::MoeScoring::kSigmoid
                                                       : reference::MoeScoring::kSelectedSoftmax;
  params.normalize = (attr.flags & TRINE_MOE_NORMALIZE) != 0;
  params.scale = attr.scale;
  const std::optional<View> bias = o.Optional(1);
  reference::MoeRoute(o.In(0), Pointer(bias), params, o.Out(0), o.Out(1), AllRows(o.In(0)));
}

void RunOp(const Operands& o, uint32_t kind) {
  const View y = o.Out(0);
  switch (kind) {
    case TRINE_OP_COPY:
      return reference::Copy(o.In(0), y, AllRows(y));
    case TRINE_OP_GATHER_ROWS:
      return reference::GatherRows(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_RMS_NORM:
    case TRINE_OP_LAYER_NORM:
      return RunNorm(o, kind == TRINE_OP_LAYER_NORM);
    case TRINE_OP_MATMUL: {
      const std::optional<View> bias = o.Optional(2);
      return reference::Matmul(o.In(0), o.In(1), Pointer(bias), y, {0, y.dims[0]});
    }
    case TRINE_OP_ROPE: {
      const bool halves = o.Attr<trine_rope_attr>().mode == TRINE_ROPE_HALVES;
      const auto mode = halves ? reference::RopeMode::kHalves : reference::RopeMode::kInterleaved;
      return reference::Rope(o.In(0), o.In(1), mode, y, AllRows(y));
    }
    case TRINE_OP_KV_STORE:
      return reference::KvStore(o.In(0), o.In(1), y, AllRows(o.In(0)));
    case TRINE_OP_ATTENTION:
      return RunAttention(o);
    case TRINE_OP_GLU:
      return RunGlu(o);
    case TRINE_OP_ACTIVATION:
      return reference::Activation(o.In(0), KindOf(o.Attr<trine_activation_attr>().activation), y,
                                   AllRows(y));
    case TRINE_OP_ADD:
      return reference::Add(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_MUL:
      return reference::Mul(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_SCALE:
      return reference::Scale(o.In(0), o.Attr<trine_scale_attr>().scale, y, AllRows(y));
    case TRINE_OP_SOFTCAP:
      return reference::Softcap(o.In(0), o.Attr<trine_scale_attr>().scale, y, AllRows(y));
    case TRINE_OP_MOE_ROUTE:
      return RunRoute(o);
    case TRINE_OP_MOE_MATMUL: {
      const std::optional<View> bias = o.Optional(3);
      return reference::MoeMatmul(o.In(0), o.In(1), o.In(2), Pointer(bias), y, {0, y.dims[0]});
    }
    case TRINE_OP_MOE_COMBINE:
      return reference::MoeCombine(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_TOP_K:
      return reference::TopK(o.In(0), y, o.Out(1), AllRows(o.In(0)));
    default:
      return;
  }
}

}  // namespace

void RunOracle(const GraphSpec& graph, const std::vector<int64_t>& params, Images* images) {
  images->resize(graph.slots.size());
  for (size_t s = 0; s < graph.slots.size(); ++s) {
    if (graph.slots[s].role == TRINE_ROLE_TEMP) (*images)[s].resize(graph.slots[s].bytes);
  }
  for (const OpSpec& op : graph.ops) RunOp(Operands(graph, op, params, images), op.kind);
}

}  // namespace trine::conformance
