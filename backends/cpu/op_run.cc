#include "backends/cpu/op_run.h"

#include "kernels/reference/ops.h"

namespace trine::cpu {
namespace {

using reference::Range;
using reference::View;

Range Share(int64_t units, uint32_t worker, uint32_t workers) {
  return {units * worker / workers, units * (worker + 1) / workers};
}

reference::ActivationKind ActivationOf(uint32_t activation) {
  switch (activation) {
    case TRINE_ACT_GELU:
      return reference::ActivationKind::kGelu;
    case TRINE_ACT_RELU:
      return reference::ActivationKind::kRelu;
    case TRINE_ACT_TANH:
      return reference::ActivationKind::kTanh;
    default:
      return reference::ActivationKind::kSilu;
  }
}

reference::GluParams GluOf(const trine_glu_attr& attr) {
  switch (attr.activation) {
    case TRINE_ACT_GELU:
      return {reference::GluKind::kGelu, attr.alpha, attr.limit};
    case TRINE_ACT_SWIGLU_CLAMPED:
      return {reference::GluKind::kClampedSwiglu, attr.alpha, attr.limit};
    default:
      return {reference::GluKind::kSilu, attr.alpha, attr.limit};
  }
}

reference::MoeRouteParams RouteOf(const trine_moe_route_attr& attr) {
  reference::MoeRouteParams params;
  params.scoring = attr.scoring == TRINE_MOE_SIGMOID ? reference::MoeScoring::kSigmoid
                   : attr.scoring == TRINE_MOE_SOFTMAX_SELECTED
                       ? reference::MoeScoring::kSelectedSoftmax
                       : reference::MoeScoring::kSoftmax;
  params.normalize = (attr.flags & TRINE_MOE_NORMALIZE) != 0;
  params.scale = attr.scale;
  return params;
}

void RunAttention(const sdk::Op& op, const Operands& o, Range rows) {
  const auto attr = op.Attr<trine_attention_attr>();
  const reference::AttentionInputs inputs{o.in[0], o.in[1], o.in[2],      o.in[3],
                                          o.in[4], o.in[5], o.Optional(6)};
  const reference::AttentionParams params{attr.scale, attr.softcap, attr.window,
                                          (attr.flags & TRINE_ATTENTION_CAUSAL) != 0};
  reference::Attention(inputs, params, o.out[0], rows);
}

}  // namespace

std::string WhyNotSupported(const sdk::Graph& graph, size_t index) {
  const sdk::Op& op = graph.ops[index];
  for (const auto* list : {&op.in, &op.out}) {
    for (uint32_t t : *list) {
      if (t != TRINE_NONE && graph.tensors[t].layout != TRINE_LAYOUT_PLAIN) {
        return "the cpu backend has no packed layouts of its own";
      }
    }
  }
  switch (op.kind) {
    case TRINE_OP_ROPE: {
      const uint32_t mode = op.Attr<trine_rope_attr>().mode;
      return mode == TRINE_ROPE_INTERLEAVED || mode == TRINE_ROPE_HALVES ? "" : "unknown rope mode";
    }
    case TRINE_OP_GLU: {
      const uint32_t a = op.Attr<trine_glu_attr>().activation;
      return a == TRINE_ACT_SILU || a == TRINE_ACT_GELU || a == TRINE_ACT_SWIGLU_CLAMPED
                 ? ""
                 : "unknown glu activation";
    }
    case TRINE_OP_ACTIVATION: {
      const uint32_t a = op.Attr<trine_activation_attr>().activation;
      return a >= TRINE_ACT_SILU && a <= TRINE_ACT_TANH ? "" : "unknown activation";
    }
    case TRINE_OP_MOE_ROUTE: {
      const uint32_t s = op.Attr<trine_moe_route_attr>().scoring;
      return s >= TRINE_MOE_SOFTMAX && s <= TRINE_MOE_SOFTMAX_SELECTED ? "" : "unknown moe scoring";
    }
    default:
      return "";
  }
}

void RunShare(const sdk::Op& op, const Operands& o, uint32_t worker, uint32_t workers) {
  const View& dst = o.out[0];
  const Range rows = Share(reference::Rows(dst), worker, workers);
  const auto units = [&](int64_t n) { return Share(n, worker, workers); };
  switch (op.kind) {
    case TRINE_OP_COPY:
      return reference::Copy(o.in[0], dst, rows);
    case TRINE_OP_GATHER_ROWS:
      return reference::GatherRows(o.in[0], o.in[1], dst, rows);
    case TRINE_OP_RMS_NORM:
      return reference::RmsNorm(o.in[0], o.Optional(1), op.Attr<trine_norm_attr>().eps, dst, rows);
    case TRINE_OP_LAYER_NORM:
      return reference::LayerNorm(o.in[0], o.Optional(1), o.Optional(2),
                                  op.Attr<trine_norm_attr>().eps, dst, rows);
    case TRINE_OP_MATMUL:
      return reference::Matmul(o.in[0], o.in[1], o.Optional(2), dst, units(dst.dims[0]));
    case TRINE_OP_ROPE: {
      const auto mode = op.Attr<trine_rope_attr>().mode == TRINE_ROPE_INTERLEAVED
                            ? reference::RopeMode::kInterleaved
                            : reference::RopeMode::kHalves;
      return reference::Rope(o.in[0], o.in[1], mode, dst, rows);
    }
    case TRINE_OP_KV_STORE:
      return reference::KvStore(o.in[0], o.in[1], dst, units(reference::Rows(o.in[0])));
    case TRINE_OP_ATTENTION:
      return RunAttention(op, o, rows);
    case TRINE_OP_GLU:
      return reference::Glu(o.in[0], o.in[1], GluOf(op.Attr<trine_glu_attr>()), dst, rows);
    case TRINE_OP_ACTIVATION:
      return reference::Activation(
          o.in[0], ActivationOf(op.Attr<trine_activation_attr>().activation), dst, rows);
    case TRINE_OP_ADD:
      return reference::Add(o.in[0], o.in[1], dst, rows);
    case TRINE_OP_MUL:
      return reference::Mul(o.in[0], o.in[1], dst, rows);
    case TRINE_OP_SCALE:
      return reference::Scale(o.in[0], op.Attr<trine_scale_attr>().scale, dst, rows);
    case TRINE_OP_SOFTCAP:
      return reference::Softcap(o.in[0], op.Attr<trine_scale_attr>().scale, dst, rows);
    case TRINE_OP_MOE_ROUTE:
      return reference::MoeRoute(o.in[0], o.Optional(1), RouteOf(op.Attr<trine_moe_route_attr>()),
                                 dst, o.out[1], units(dst.dims[1]));
    case TRINE_OP_MOE_MATMUL:
      return reference::MoeMatmul(o.in[0], o.in[1], o.in[2], o.Optional(3), dst,
                                  units(dst.dims[0]));
    case TRINE_OP_MOE_COMBINE:
      return reference::MoeCombine(o.in[0], o.in[1], dst, rows);
    case TRINE_OP_TOP_K:
      return reference::TopK(o.in[0], dst, o.out[1], units(reference::Rows(o.in[0])));
    default:
      return;  // refused when the plan was made
  }
}

}  // namespace trine::cpu
