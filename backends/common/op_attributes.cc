#include "backends/common/op_attributes.h"

#include <algorithm>

#include "kernels/quant/block_types.h"

namespace trine::backends {

bool IsQuantizedProduct(const sdk::Graph& graph, const sdk::Op& op) {
  return IsProduct(op.kind) &&
         quant::IsQuantized(static_cast<quant::Type>(graph.tensors[op.in[0]].dtype));
}

bool SameDims(const trine_tensor& a, const trine_tensor& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

reference::ActivationKind ActivationOf(const sdk::Op& op) {
  switch (op.Attr<trine_activation_attr>().activation) {
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

reference::AttentionParams AttentionParamsOf(const sdk::Op& op) {
  const auto attr = op.Attr<trine_attention_attr>();
  reference::AttentionParams params;
  params.scale = attr.scale;
  params.softcap = attr.softcap;
  params.window = attr.window;
  params.causal = (attr.flags & TRINE_ATTENTION_CAUSAL) != 0;
  return params;
}

reference::GluParams GluParamsOf(const sdk::Op& op) {
  const auto attr = op.Attr<trine_glu_attr>();
  reference::GluParams params;
  params.kind = attr.activation == TRINE_ACT_SILU   ? reference::GluKind::kSilu
                : attr.activation == TRINE_ACT_GELU ? reference::GluKind::kGelu
                                                    : reference::GluKind::kClampedSwiglu;
  params.alpha = attr.alpha;
  params.limit = attr.limit;
  return params;
}

reference::RopeMode RopeModeOf(const sdk::Op& op) {
  return op.Attr<trine_rope_attr>().mode == TRINE_ROPE_HALVES ? reference::RopeMode::kHalves
                                                              : reference::RopeMode::kInterleaved;
}

reference::MoeRouteParams RouteParamsOf(const sdk::Op& op) {
  const auto attr = op.Attr<trine_moe_route_attr>();
  reference::MoeRouteParams params;
  params.scoring = attr.scoring == TRINE_MOE_SOFTMAX   ? reference::MoeScoring::kSoftmax
                   : attr.scoring == TRINE_MOE_SIGMOID ? reference::MoeScoring::kSigmoid
                                                       : reference::MoeScoring::kSelectedSoftmax;
  params.normalize = (attr.flags & TRINE_MOE_NORMALIZE) != 0;
  params.scale = attr.scale;
  return params;
}

int64_t PositionsSeen(const sdk::Graph& graph, int64_t in_table, const int64_t* params) {
  int64_t positions = in_table;
  for (size_t i = 0; i < graph.params.size(); ++i) {
    if (graph.params[i].kind == TRINE_PARAM_KV_POSITIONS) {
      positions = std::min(positions, params[i]);
    }
  }
  return WholeChunks(positions);
}

std::string WhyNotAttributes(const sdk::Op& op) {
  const auto between = [](uint32_t value, uint32_t first, uint32_t last) {
    return value >= first && value <= last;
  };
  switch (op.kind) {
    case TRINE_OP_ROPE:
      return between(op.Attr<trine_rope_attr>().mode, TRINE_ROPE_INTERLEAVED, TRINE_ROPE_HALVES)
                 ? ""
                 : "unknown rope mode";
    case TRINE_OP_GLU: {
      const uint32_t kind = op.Attr<trine_glu_attr>().activation;
      return kind == TRINE_ACT_SILU || kind == TRINE_ACT_GELU || kind == TRINE_ACT_SWIGLU_CLAMPED
                 ? ""
                 : "unknown activation of a glu";
    }
    case TRINE_OP_ACTIVATION:
      return between(op.Attr<trine_activation_attr>().activation, TRINE_ACT_SILU, TRINE_ACT_TANH)
                 ? ""
                 : "unknown activation";
    case TRINE_OP_MOE_ROUTE: {
      const auto attr = op.Attr<trine_moe_route_attr>();
      if (!between(attr.scoring, TRINE_MOE_SOFTMAX, TRINE_MOE_SOFTMAX_SELECTED)) {
        return "unknown scoring of experts";
      }
      return (attr.flags & ~uint32_t{TRINE_MOE_NORMALIZE}) == 0 ? "" : "unknown flags of a route";
    }
    case TRINE_OP_ATTENTION:
      return (op.Attr<trine_attention_attr>().flags & ~uint32_t{TRINE_ATTENTION_CAUSAL}) == 0
                 ? ""
                 : "unknown flags of attention";
    default:
      return "";
  }
}

}  // namespace trine::backends
