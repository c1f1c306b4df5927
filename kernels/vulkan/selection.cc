#include "kernels/vulkan/selection.h"

#include "kernels/vulkan/shaders.h"

namespace trine::vulkan {
namespace {

constexpr int64_t kWord = 4;

}  // namespace

KernelRun TopKRun(const TensorView& x, const TensorView& ids, const TensorView& values,
                  uint32_t workgroup) {
  KernelRun run;
  run.shader = &shaders::top_k;
  run.constants = {workgroup};
  run.push = {Word(x.dims[0]), Word(x.dims[1]), Word(ids.dims[0])};
  for (const TensorView* view : {&x, &ids, &values}) AppendPlace(*view, 2, kWord, &run.push);
  run.groups = {CappedGroups(static_cast<uint64_t>(x.dims[1]), 1), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

KernelRun MoeRouteRun(const TensorView& logits, const TensorView* bias,
                      const reference::MoeRouteParams& params, const TensorView& ids,
                      const TensorView& weights, uint32_t workgroup) {
  uint32_t scoring = 2;  // as in moe_route.comp
  if (params.scoring == reference::MoeScoring::kSoftmax) scoring = 0;
  if (params.scoring == reference::MoeScoring::kSigmoid) scoring = 1;
  KernelRun run;
  run.shader = &shaders::moe_route;
  run.constants = {workgroup, scoring, bias != nullptr, params.normalize};
  run.push = {Word(logits.dims[0]), Word(logits.dims[1]), Word(ids.dims[0])};
  AppendPlace(logits, 2, kWord, &run.push);
  AppendPlace(bias != nullptr ? *bias : TensorView{}, 1, kWord, &run.push);
  AppendPlace(ids, 2, kWord, &run.push);
  AppendPlace(weights, 2, kWord, &run.push);
  run.push.push_back(FloatWord(params.scale));
  run.groups = {CappedGroups(static_cast<uint64_t>(logits.dims[1]), 1), 1, 1};
  run.operands = {0, bias != nullptr ? 1u : 0u, 2, 3};
  return run;
}

KernelRun MoeCombineRun(const TensorView& x, const TensorView& weights, const TensorView& y,
                        uint32_t workgroup) {
  const int64_t total = y.dims[0] * y.dims[1];
  KernelRun run;
  run.shader = &shaders::moe_combine;
  run.constants = {workgroup};
  run.push = {Word(y.dims[0]), Word(total), Word(x.dims[1])};
  AppendPlace(x, 3, kWord, &run.push);
  AppendPlace(weights, 2, kWord, &run.push);
  AppendPlace(y, 2, kWord, &run.push);
  run.groups = {CappedGroups(static_cast<uint64_t>(total), workgroup), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

}  // namespace trine::vulkan
