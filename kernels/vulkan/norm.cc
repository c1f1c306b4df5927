#include "kernels/vulkan/norm.h"

#include <algorithm>
#include <bit>

#include "kernels/quant/scalar.h"
#include "kernels/vulkan/products.h"
#include "kernels/vulkan/shaders.h"

namespace trine::vulkan {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr uint32_t kMaxWorkgroup = 512;
// Vectors of four values that the shader adds up at a time: a workgroup holds a multiple of them.
constexpr int64_t kVectors = 64;

uint32_t OffsetOf(const std::optional<TensorView>& view) {
  return view ? Word(static_cast<int64_t>(view->offset) / kFloat) : 0;
}

void AppendOptionalPlace(const std::optional<TensorView>& view, std::vector<uint32_t>* push) {
  AppendPlace(view ? *view : TensorView{}, 4, kFloat, push);
}

}  // namespace

uint32_t NormWorkgroup(int64_t n, uint32_t most) {
  uint32_t workgroup = 32;
  while (2 * workgroup <= std::min(most, kMaxWorkgroup) && 4 * int64_t{workgroup} < n) {
    workgroup *= 2;
  }
  return workgroup;
}

int64_t MostNormValues(uint32_t most) {
  constexpr int64_t kKept = 32;
  return 4 * kKept * std::bit_floor(std::min(most, kMaxWorkgroup));
}

KernelRun NormRun(const Norm& norm, uint32_t workgroup) {
  const int64_t n = norm.x.dims[0];
  const int64_t whole = std::max<int64_t>(kVectors, workgroup) * 4;
  const int64_t kept = (n + whole - 1) / whole * whole / 4 / workgroup;
  KernelRun run;
  run.shader = &shaders::norm;
  run.constants = {workgroup,
                   Word(kept),
                   norm.centred,
                   norm.weight.has_value(),
                   norm.bias.has_value(),
                   norm.addend.has_value(),
                   norm.writes_y,
                   norm.quantized.has_value()};
  run.push = {Word(n), Word(norm.y.dims[1]), Word(norm.y.dims[2]), Word(Rows(norm.y))};
  AppendPlace(norm.x, 4, kFloat, &run.push);
  AppendOptionalPlace(norm.addend, &run.push);
  AppendOptionalPlace(norm.sum, &run.push);
  AppendPlace(norm.y, 4, kFloat, &run.push);
  run.push.insert(run.push.end(),
                  {OffsetOf(norm.weight), OffsetOf(norm.bias), FloatWord(norm.eps),
                   FloatWord(quant::Recip(static_cast<float>(n))),
                   Word(static_cast<int64_t>(norm.quantized.value_or(0)) / 4),
                   norm.quantized ? Word(static_cast<int64_t>(QuantizedBytes(n, 1)) / 4) : 0});
  run.groups = {CappedGroups(static_cast<uint64_t>(Rows(norm.y)), 1), 1, 1};
  // What is not written stands where something is.
  const uint32_t written = norm.writes_y ? uint32_t{kNormY} : kScratchOperand;
  run.operands = {kNormX,
                  norm.weight ? uint32_t{kNormWeight} : uint32_t{kNormX},
                  norm.bias ? uint32_t{kNormBias} : uint32_t{kNormX},
                  norm.addend ? uint32_t{kNormAddend} : uint32_t{kNormX},
                  norm.sum ? uint32_t{kNormSum} : written,
                  written,
                  norm.quantized ? kScratchOperand : written};
  return run;
}

}  // namespace trine::vulkan
