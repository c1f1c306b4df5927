#include "backends/vulkan/simple_runs.h"

#include <array>

#include "kernels/vulkan/attention.h"
#include "kernels/vulkan/data_movement.h"
#include "kernels/vulkan/elementwise.h"
#include "kernels/vulkan/selection.h"

namespace trine::vulkan {
namespace {

class Maker {
 public:
  Maker(const RunChoices& choices, const Operands& operands)
      : caps_(*choices.caps), tuning_(choices.tuning), o_(operands) {}

  KernelRun Make() const {
    switch (o_.op().kind) {
      case TRINE_OP_COPY:
        return CopyRun(o_.In(0), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_ROPE:
        return RopeRun(o_.In(0), o_.In(1), RopeModeOf(o_.op()), o_.Out(0),
                       tuning_.elementwise_workgroup);
      case TRINE_OP_KV_STORE:
        return KvStoreRun(o_.In(0), o_.In(1), o_.Out(0), Workgroup());
      case TRINE_OP_GLU:
        return GluRun(o_.In(0), o_.In(1), GluParamsOf(o_.op()), o_.Out(0),
                      tuning_.elementwise_workgroup);
      case TRINE_OP_ACTIVATION:
        return ActivationRun(o_.In(0), Activation(), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_ADD:
        return AddRun(o_.In(0), o_.In(1), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_MUL:
        return MulRun(o_.In(0), o_.In(1), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_SCALE:
        return ScaleRun(o_.In(0), o_.op().Attr<trine_scale_attr>().scale, o_.Out(0),
                        tuning_.elementwise_workgroup);
      case TRINE_OP_SOFTCAP:
        return SoftcapRun(o_.In(0), o_.op().Attr<trine_scale_attr>().scale, o_.Out(0),
                          tuning_.elementwise_workgroup);
      case TRINE_OP_MOE_ROUTE:
        return MoeRouteRun(o_.In(0), Optional(1), RouteParams(), o_.Out(0), o_.Out(1), Workgroup());
      case TRINE_OP_MOE_COMBINE:
        return MoeCombineRun(o_.In(0), o_.In(1), o_.Out(0), Workgroup());
      default:
        return TopKRun(o_.In(0), o_.Out(0), o_.Out(1), Workgroup());
    }
  }

 private:
  // A power of two that every device has.
  uint32_t Workgroup() const { return caps_.max_workgroup_invocations >= 256 ? 256 : 128; }

  const TensorView* Optional(size_t i) const {
    if (!o_.Has(i)) return nullptr;
    views_[i] = o_.In(i);
    return &views_[i];
  }

  reference::ActivationKind Activation() const {
    switch (o_.op().Attr<trine_activation_attr>().activation) {
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

  reference::MoeRouteParams RouteParams() const {
    const auto attr = o_.op().Attr<trine_moe_route_attr>();
    reference::MoeRouteParams params;
    params.scoring = attr.scoring == TRINE_MOE_SOFTMAX   ? reference::MoeScoring::kSoftmax
                     : attr.scoring == TRINE_MOE_SIGMOID ? reference::MoeScoring::kSigmoid
                                                         : reference::MoeScoring::kSelectedSoftmax;
    params.normalize = (attr.flags & TRINE_MOE_NORMALIZE) != 0;
    params.scale = attr.scale;
    return params;
  }

  const DeviceCaps& caps_;
  const Tuning& tuning_;
  const Operands& o_;
  mutable std::array<TensorView, 2> views_;
};

}  // namespace

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

KernelRun SimpleRun(const RunChoices& choices, const Operands& operands) {
  return Maker(choices, operands).Make();
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

}  // namespace trine::vulkan
