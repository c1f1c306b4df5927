#include "kernels/vulkan/norm.h"

#include "kernels/vulkan/shaders.h"

namespace trine::vulkan {
namespace {

constexpr int64_t kFloat = sizeof(float);

uint32_t OffsetOf(const TensorView* view) {
  return view == nullptr ? 0 : Word(static_cast<int64_t>(view->offset) / kFloat);
}

KernelRun NormRun(bool centred, const TensorView& x, const TensorView* weight,
                  const TensorView* bias, float eps, const TensorView& y, uint32_t workgroup) {
  KernelRun run;
  run.shader = &shaders::norm;
  run.constants = {workgroup, centred, weight != nullptr, bias != nullptr};
  run.push = {Word(x.dims[0]), Word(y.dims[1]), Word(y.dims[2]), Word(Rows(y))};
  AppendPlace(x, 4, kFloat, &run.push);
  AppendPlace(y, 4, kFloat, &run.push);
  run.push.insert(run.push.end(), {OffsetOf(weight), OffsetOf(bias), FloatWord(eps)});
  run.groups = {CappedGroups(static_cast<uint64_t>(Rows(y)), 1), 1, 1};
  const uint32_t out = centred ? 3 : 2;
  run.operands = {0, weight != nullptr ? 1u : 0u, bias != nullptr ? 2u : 0u, out};
  return run;
}

}  // namespace

KernelRun RmsNormRun(const TensorView& x, const TensorView* weight, float eps, const TensorView& y,
                     uint32_t workgroup) {
  return NormRun(false, x, weight, nullptr, eps, y, workgroup);
}

KernelRun LayerNormRun(const TensorView& x, const TensorView* weight, const TensorView* bias,
                       float eps, const TensorView& y, uint32_t workgroup) {
  return NormRun(true, x, weight, bias, eps, y, workgroup);
}

}  // namespace trine::vulkan
