#include "kernels/vulkan/elementwise.h"

#include "kernels/vulkan/flatten.h"
#include "kernels/vulkan/products.h"
#include "kernels/vulkan/shaders.h"

namespace trine::vulkan {
namespace {

constexpr int64_t kFloat = sizeof(float);

// As in unary.comp, and in binary.comp and glu.glsl.
enum class UnaryKind : uint32_t { kScale, kSoftcap, kSilu, kGelu, kRelu, kTanh };
enum class BinaryKind : uint32_t { kAdd, kMul, kGluSilu, kGluGelu, kGluClampedSwiglu };

constexpr uint32_t kQuantizeWorkgroup = 64;
constexpr uint32_t kBlockLanes = 8;  // that quantise a block

BinaryKind KindOf(const reference::GluParams& params) {
  if (params.kind == reference::GluKind::kSilu) return BinaryKind::kGluSilu;
  if (params.kind == reference::GluKind::kGelu) return BinaryKind::kGluGelu;
  return BinaryKind::kGluClampedSwiglu;
}

void AppendDims(const std::array<int64_t, 4>& dims, std::vector<uint32_t>* push) {
  for (int i = 0; i < 3; ++i) push->push_back(Word(dims[i]));
  push->push_back(Word(dims[0] * dims[1] * dims[2] * dims[3]));
}

KernelRun UnaryRun(UnaryKind kind, TensorView x, float parameter, TensorView y,
                   uint32_t workgroup) {
  std::array<int64_t, 4> dims = y.dims;
  const auto total = static_cast<uint64_t>(dims[0] * Rows(y));
  Flatten(&dims, {{&x, kFloat}, {&y, kFloat}});
  KernelRun run;
  run.shader = &shaders::unary;
  run.constants = {workgroup, static_cast<uint32_t>(kind)};
  AppendDims(dims, &run.push);
  AppendPlace(x, 4, kFloat, &run.push);
  AppendPlace(y, 4, kFloat, &run.push);
  run.push.push_back(FloatWord(parameter));
  run.groups = {CappedGroups(total, workgroup), 1, 1};
  run.operands = {0, 1};
  return run;
}

KernelRun BinaryRun(BinaryKind kind, TensorView a, TensorView b, const reference::GluParams& params,
                    TensorView y, uint32_t workgroup) {
  std::array<int64_t, 4> dims = y.dims;
  const auto total = static_cast<uint64_t>(dims[0] * Rows(y));
  for (int i = 1; i < 4; ++i) {
    if (b.dims[i] == 1) b.strides[i] = 0;
  }
  const int64_t b_step = b.dims[0] == 1 ? 0 : kFloat;
  Flatten(&dims, {{&a, kFloat}, {&b, b_step}, {&y, kFloat}});
  KernelRun run;
  run.shader = &shaders::binary;
  run.constants = {workgroup, static_cast<uint32_t>(kind)};
  AppendDims(dims, &run.push);
  for (const TensorView* view : {&a, &b, &y}) AppendPlace(*view, 4, kFloat, &run.push);
  run.push.push_back(Word(b_step / kFloat));
  run.push.push_back(FloatWord(params.alpha));
  run.push.push_back(FloatWord(params.limit));
  run.groups = {CappedGroups(total, workgroup), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

}  // namespace

KernelRun AddRun(const TensorView& a, const TensorView& b, const TensorView& y,
                 uint32_t workgroup) {
  return BinaryRun(BinaryKind::kAdd, a, b, {}, y, workgroup);
}

KernelRun MulRun(const TensorView& a, const TensorView& b, const TensorView& y,
                 uint32_t workgroup) {
  return BinaryRun(BinaryKind::kMul, a, b, {}, y, workgroup);
}

KernelRun GluRun(const TensorView& gate, const TensorView& up, const reference::GluParams& params,
                 const TensorView& y, uint32_t workgroup) {
  return BinaryRun(KindOf(params), gate, up, params, y, workgroup);
}

KernelRun GluQuantizeRun(const TensorView& gate, const TensorView& up,
                         const reference::GluParams& params, const TensorView& y, bool writes_y,
                         uint64_t quantized) {
  const int64_t blocks = y.dims[0] / quant::kGroupValues, columns = Rows(y);
  KernelRun run;
  run.shader = &shaders::glu_quantize;
  run.constants = {kQuantizeWorkgroup, static_cast<uint32_t>(KindOf(params)), writes_y};
  run.push = {Word(blocks), Word(y.dims[1]), Word(y.dims[2]),
              Word(static_cast<int64_t>(quantized) / 4),
              Word(static_cast<int64_t>(QuantizedBytes(y.dims[0], 1)) / 4)};
  for (const TensorView* view : {&gate, &up, &y}) AppendPlace(*view, 3, kFloat, &run.push);
  run.push.push_back(FloatWord(params.alpha));
  run.push.push_back(FloatWord(params.limit));
  run.groups = {
      CappedGroups(static_cast<uint64_t>(blocks * columns) * kBlockLanes, kQuantizeWorkgroup), 1,
      1};
  run.operands = {0, 1, writes_y ? 2 : kScratchOperand, kScratchOperand};
  return run;
}

KernelRun ScaleRun(const TensorView& x, float scale, const TensorView& y, uint32_t workgroup) {
  return UnaryRun(UnaryKind::kScale, x, scale, y, workgroup);
}

KernelRun SoftcapRun(const TensorView& x, float cap, const TensorView& y, uint32_t workgroup) {
  return UnaryRun(UnaryKind::kSoftcap, x, cap, y, workgroup);
}

KernelRun ActivationRun(const TensorView& x, reference::ActivationKind kind, const TensorView& y,
                        uint32_t workgroup) {
  UnaryKind unary = UnaryKind::kTanh;
  if (kind == reference::ActivationKind::kSilu) unary = UnaryKind::kSilu;
  if (kind == reference::ActivationKind::kGelu) unary = UnaryKind::kGelu;
  if (kind == reference::ActivationKind::kRelu) unary = UnaryKind::kRelu;
  return UnaryRun(unary, x, 0.0f, y, workgroup);
}

}  // namespace trine::vulkan
