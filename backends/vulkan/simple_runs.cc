#include "backends/vulkan/simple_runs.h"

#include <array>

#include "backends/common/op_attributes.h"
#include "kernels/vulkan/attention.h"
#include "kernels/vulkan/data_movement.h"
#include "kernels/vulkan/elementwise.h"
#include "kernels/vulkan/selection.h"

namespace trine::vulkan {
namespace {

using backends::ActivationOf;
using backends::GluParamsOf;
using backends::RopeModeOf;
using backends::RouteParamsOf;

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
        return ActivationRun(o_.In(0), ActivationOf(o_.op()), o_.Out(0),
                             tuning_.elementwise_workgroup);
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
        return MoeRouteRun(o_.In(0), Optional(1), RouteParamsOf(o_.op()), o_.Out(0), o_.Out(1),
                           Workgroup());
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

  const DeviceCaps& caps_;
  const Tuning& tuning_;
  const Operands& o_;
  mutable std::array<TensorView, 2> views_;
};

}  // namespace

KernelRun SimpleRun(const RunChoices& choices, const Operands& operands) {
  return Maker(choices, operands).Make();
}

}  // namespace trine::vulkan
