#include "kernels/vulkan/runs/simple.h"

#include <algorithm>
#include <bit>

#include "kernels/quant/scalar.h"
#include "kernels/vulkan/runs/dispatch.h"
#include "kernels/vulkan/runs/products.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

// The kinds of unary.comp, and of binary.comp and glu.glsl, which must agree.
enum class UnaryKind : uint32_t { kScale, kSoftcap, kSilu, kGelu, kRelu, kTanh };
enum class BinaryKind : uint32_t { kAdd, kMul, kGluSilu, kGluGelu, kGluClampedSwiglu };

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
  Flatten(&dims, {{&x, kWordBytes}, {&y, kWordBytes}});
  KernelRun run;
  run.shader = &shaders::unary;
  run.constants = {workgroup, static_cast<uint32_t>(kind)};
  AppendDims(dims, &run.push);
  AppendPlace(x, 4, kWordBytes, &run.push);
  AppendPlace(y, 4, kWordBytes, &run.push);
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
  const int64_t b_step = b.dims[0] == 1 ? 0 : kWordBytes;
  Flatten(&dims, {{&a, kWordBytes}, {&b, b_step}, {&y, kWordBytes}});
  KernelRun run;
  run.shader = &shaders::binary;
  run.constants = {workgroup, static_cast<uint32_t>(kind)};
  AppendDims(dims, &run.push);
  for (const TensorView* view : {&a, &b, &y}) AppendPlace(*view, 4, kWordBytes, &run.push);
  run.push.push_back(Word(b_step / kWordBytes));
  run.push.push_back(FloatWord(params.alpha));
  run.push.push_back(FloatWord(params.limit));
  run.groups = {CappedGroups(total, workgroup), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

using quant::Type;

// The forms of copy.comp, which must agree.
enum class CopyForm : uint32_t { kWord, kHalf, kByte, kF32, kF16, kBf16 };

struct Element {
  CopyForm form;
  int64_t bytes;
};

Element ConvertedElement(Type type) {
  if (type == Type::kF16) return {CopyForm::kF16, 2};
  if (type == Type::kBF16) return {CopyForm::kBf16, 2};
  return {CopyForm::kF32, 4};
}

// Returns the largest unit in which rows of `row_bytes` can be moved.
Element MovedElement(const TensorView& x, const TensorView& y, int64_t row_bytes) {
  for (const Element& element : {Element{CopyForm::kWord, 4}, Element{CopyForm::kHalf, 2}}) {
    const int64_t unit = element.bytes;
    if (row_bytes % unit == 0 && IsWhole(x, unit) && IsWhole(y, unit)) return element;
  }
  return {CopyForm::kByte, 1};
}

constexpr uint32_t kMaxWorkgroup = 512;
// Vectors of four values that the shader adds up at a time; a workgroup holds a multiple of them.
constexpr int64_t kVectors = 64;

uint32_t OffsetOf(const std::optional<TensorView>& view) {
  return view ? Word(static_cast<int64_t>(view->offset) / kWordBytes) : 0;
}

void AppendOptionalPlace(const std::optional<TensorView>& view, std::vector<uint32_t>* push) {
  AppendPlace(view ? *view : TensorView{}, 4, kWordBytes, push);
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
  for (const TensorView* view : {&gate, &up, &y}) AppendPlace(*view, 3, kWordBytes, &run.push);
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

KernelRun CopyRun(const TensorView& x, const TensorView& y, uint32_t workgroup) {
  TensorView from_view = x, to_view = y;
  std::array<int64_t, 4> dims = y.dims;
  Element from = ConvertedElement(x.type), to = ConvertedElement(y.type);
  if (x.type == y.type) {
    const quant::TypeTraits traits = quant::Traits(x.type);
    const int64_t row_bytes = dims[0] / traits.block_values * traits.block_bytes;
    from = to = MovedElement(x, y, row_bytes);
    dims[0] = row_bytes / from.bytes;
  }
  const auto total = static_cast<uint64_t>(dims[0] * Rows(y));
  Flatten(&dims, {{&from_view, from.bytes}, {&to_view, to.bytes}});
  KernelRun run;
  run.shader = &shaders::copy;
  run.constants = {workgroup, static_cast<uint32_t>(from.form), static_cast<uint32_t>(to.form)};
  run.push = {Word(dims[0]), Word(dims[1]), Word(dims[2]), static_cast<uint32_t>(total)};
  AppendPlace(from_view, 4, from.bytes, &run.push);
  AppendPlace(to_view, 4, to.bytes, &run.push);
  run.groups = {CappedGroups(total, workgroup), 1, 1};
  run.operands = {0, 1};
  return run;
}

KernelRun GatherRowsRun(const TensorView& table, const TableWindow& window, const TensorView& ids,
                        const TensorView& y, uint32_t workgroup) {
  const int64_t k = table.dims[0], n = y.dims[1];
  KernelRun run;
  run.shader = &shaders::gather_rows;
  run.constants = {workgroup, static_cast<uint32_t>(table.type)};
  run.push = {Word(k), Word(n)};
  AppendPlace(table, 2, 1, &run.push);
  run.push.push_back(Word(table.dims[1]));
  run.push.push_back(Word(window.first_row));
  run.push.push_back(Word(window.first_row + window.rows));
  AppendPlace(ids, 1, sizeof(int32_t), &run.push);
  AppendPlace(y, 2, sizeof(float), &run.push);
  run.groups = {CappedGroups(static_cast<uint64_t>(k), workgroup),
                CappedGroups(static_cast<uint64_t>(n), 1), 1};
  run.operands = {0, 1, 2};
  return run;
}

KernelRun TopKRun(const TensorView& x, const TensorView& ids, const TensorView& values,
                  uint32_t workgroup) {
  KernelRun run;
  run.shader = &shaders::top_k;
  run.constants = {workgroup};
  run.push = {Word(x.dims[0]), Word(x.dims[1]), Word(ids.dims[0])};
  for (const TensorView* view : {&x, &ids, &values}) AppendPlace(*view, 2, kWordBytes, &run.push);
  run.groups = {CappedGroups(static_cast<uint64_t>(x.dims[1]), 1), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

KernelRun MoeRouteRun(const TensorView& logits, const TensorView* bias,
                      const reference::MoeRouteParams& params, const TensorView& ids,
                      const TensorView& weights, uint32_t workgroup) {
  uint32_t scoring = 2;  // the numbers of moe_route.comp
  if (params.scoring == reference::MoeScoring::kSoftmax) scoring = 0;
  if (params.scoring == reference::MoeScoring::kSigmoid) scoring = 1;
  KernelRun run;
  run.shader = &shaders::moe_route;
  run.constants = {workgroup, scoring, bias != nullptr, params.normalize};
  run.push = {Word(logits.dims[0]), Word(logits.dims[1]), Word(ids.dims[0])};
  AppendPlace(logits, 2, kWordBytes, &run.push);
  AppendPlace(bias != nullptr ? *bias : TensorView{}, 1, kWordBytes, &run.push);
  AppendPlace(ids, 2, kWordBytes, &run.push);
  AppendPlace(weights, 2, kWordBytes, &run.push);
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
  AppendPlace(x, 3, kWordBytes, &run.push);
  AppendPlace(weights, 2, kWordBytes, &run.push);
  AppendPlace(y, 2, kWordBytes, &run.push);
  run.groups = {CappedGroups(static_cast<uint64_t>(total), workgroup), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

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
  const int64_t kept = CeilDiv(n, whole) * whole / 4 / workgroup;
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
  AppendPlace(norm.x, 4, kWordBytes, &run.push);
  AppendOptionalPlace(norm.addend, &run.push);
  AppendOptionalPlace(norm.sum, &run.push);
  AppendPlace(norm.y, 4, kWordBytes, &run.push);
  run.push.insert(run.push.end(),
                  {OffsetOf(norm.weight), OffsetOf(norm.bias), FloatWord(norm.eps),
                   FloatWord(quant::Recip(static_cast<float>(n))),
                   Word(static_cast<int64_t>(norm.quantized.value_or(0)) / 4),
                   norm.quantized ? Word(static_cast<int64_t>(QuantizedBytes(n, 1)) / 4) : 0});
  run.groups = {CappedGroups(static_cast<uint64_t>(Rows(norm.y)), 1), 1, 1};
  // A binding that is not written holds an operand that is.
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
