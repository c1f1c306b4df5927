#include "tests/vulkan/executor_cases.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/reference/test_tensor.h"
#include "kernels/vulkan/runs/attention.h"
#include "kernels/vulkan/runs/products.h"
#include "kernels/vulkan/runs/simple.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using reference::Random;
using reference::Tensor;
using reference::Type;
using Dims = std::initializer_list<int64_t>;
using Operand = ExecutorCase::Operand;

// Puts the tensor behind 16 bytes, so that offsets count.
Operand OperandFrom(const Tensor& tensor) { return {ViewOf(tensor, 16), OperandOf(tensor, 16)}; }

Operand Floats(Dims dims, uint64_t seed = 1) {
  Random random(seed);
  Tensor tensor(Type::kF32, dims);
  return OperandFrom(tensor.FillWith(Fill::kUniform, &random));
}

Operand Ints(Dims dims, std::initializer_list<int32_t> values) {
  Tensor tensor(Type::kI32, dims);
  return OperandFrom(tensor.Set(values));
}

Operand Weights(Type type, Dims dims) {
  Random random(7);
  Tensor tensor(type, dims);
  return OperandFrom(tensor.FillWeights(false, &random));
}

// Makes quantised activations as an operand, not in scratch, so that they can be compared.
Operand Quantized(int64_t k, int64_t columns) {
  return {TensorView{}, Bytes(QuantizedBytes(k, columns))};
}
KernelRun WithScratchAt(uint32_t operand, KernelRun run) {
  std::replace(run.operands.begin(), run.operands.end(), kScratchOperand, operand);
  return run;
}

void AddElementwise(std::vector<ExecutorCase>* cases) {
  const Operand a = Floats({70, 3}), b = Floats({70}), y = Floats({70, 3}, 2);
  cases->push_back({"add", {AddRun(a.view, b.view, y.view, 64)}, {a, b, y}});
  cases->push_back({"glu", {GluRun(a.view, a.view, {}, y.view, 64)}, {a, a, y}});
  cases->push_back({"softcap", {SoftcapRun(a.view, 30.0f, y.view, 64)}, {a, y}});
  cases->push_back({"copy", {CopyRun(a.view, y.view, 64)}, {a, y}});
  // The shader of docs/vulkan.md, which no op uses.
  KernelRun plain;
  plain.shader = &shaders::add_f32;
  plain.constants = {64};
  plain.push = {200};
  plain.groups = {4, 1, 1};
  plain.operands = {0, 1, 2};
  cases->push_back({"add_f32", {plain}, {a, a, y}});
}

// Norms alone, and with everything that may be fused with them.
void AddNorms(std::vector<ExecutorCase>* cases) {
  const Operand x = Floats({96, 3}), weight = Floats({96}, 2), bias = Floats({96}, 3);
  const Operand addend = Floats({96, 3}, 4), sum = Floats({96, 3}, 5), y = Floats({96, 3}, 6);
  const Operand quantized = Quantized(96, 3);
  Norm norm;
  norm.x = x.view;
  norm.eps = 1e-5f;
  norm.y = y.view;
  const std::vector<Operand> operands = {x, weight, bias, addend, sum, y, quantized};
  cases->push_back({"rms_norm", {NormRun(norm, 32)}, operands});
  norm.centred = true;
  norm.weight = weight.view;
  norm.bias = bias.view;
  cases->push_back({"layer_norm", {NormRun(norm, 32)}, operands});
  norm.addend = addend.view;
  norm.sum = sum.view;
  norm.quantized = 0;
  cases->push_back(
      {"add, layer_norm, quantize", {WithScratchAt(kNormY + 1, NormRun(norm, 32))}, operands});
}

void AddGluQuantize(std::vector<ExecutorCase>* cases) {
  const Operand gate = Floats({96, 3}), up = Floats({96, 3}, 2), y = Floats({96, 3}, 3);
  const KernelRun run = GluQuantizeRun(gate.view, up.view, {}, y.view, true, 0);
  cases->push_back({"glu, quantize", {WithScratchAt(3, run)}, {gate, up, y, Quantized(96, 3)}});
}

void AddRows(std::vector<ExecutorCase>* cases) {
  const Operand table = Weights(Type::kQ8_0, {96, 9}), ids = Ints({3}, {8, 0, 4});
  const Operand rows = Floats({96, 3});
  cases->push_back(
      {"gather_rows", {GatherRowsRun(table.view, ids.view, rows.view, 64)}, {table, ids, rows}});
  const Operand x = Floats({500, 2}), best = Ints({5, 2}, {}), values = Floats({5, 2});
  cases->push_back({"top_k", {TopKRun(x.view, best.view, values.view, 64)}, {x, best, values}});
  const Operand logits = Floats({40, 3}), used = Ints({4, 3}, {}), weights = Floats({4, 3});
  cases->push_back({"moe_route",
                    {MoeRouteRun(logits.view, nullptr, {}, used.view, weights.view, 64)},
                    {logits, logits, used, weights}});
  const Operand parts = Floats({70, 4, 3}), y = Floats({70, 3});
  cases->push_back(
      {"moe_combine", {MoeCombineRun(parts.view, weights.view, y.view, 64)}, {parts, weights, y}});
}

void AddAttention(std::vector<ExecutorCase>* cases) {
  const Operand x = Floats({64, 2, 3}), table = Floats({64, 3}), slots = Ints({3}, {5, 40, 300});
  cases->push_back({"rope",
                    {RopeRun(x.view, table.view, reference::RopeMode::kHalves, x.view, 64)},
                    {x, table, x}});
  const Operand cache = Weights(Type::kF16, {64, 64, 2, 6});
  const Operand q8 = Weights(Type::kQ8_KV, {64, 64, 2, 6});
  cases->push_back(
      {"kv_store", {KvStoreRun(x.view, slots.view, cache.view, 64)}, {x, slots, cache}});
  cases->push_back({"kv_store q8", {KvStoreRun(x.view, slots.view, q8.view, 64)}, {x, slots, q8}});
  const Operand q = Floats({64, 4, 3}), y = Floats({64, 4, 3}), sinks = Floats({4});
  RotateStore work;
  work.table = table.view;
  work.q = q.view;
  work.rotated_q = y.view;
  work.k = x.view;
  work.rotated_k = x.view;
  work.slots = slots.view;
  work.v = x.view;
  work.key_cache = work.value_cache = cache.view;
  cases->push_back(
      {"rotate_store", {RotateStoreRun(work, 64)}, {q, x, x, table, slots, y, x, cache, cache}});
  const Operand blocks = Ints({6}, {3, 0, 5, 1, 4, 2}), offsets = Ints({2}, {0, 3});
  const Operand lengths = Ints({1}, {330});
  const AttentionViews views = {q.view,       cache.view,   cache.view,  blocks.view,
                                offsets.view, lengths.view, &sinks.view, y.view};
  const reference::AttentionParams params = {0.125f, 0, 0, true};
  for (const AttentionCut& cut : {AttentionCut{64, 4, false}, {64, 8, false}, {64, 4, true}}) {
    for (const bool quantizes : {false, true}) {
      cases->push_back({quantizes ? "attention, quantize" : "attention",
                        AttentionRuns(views, params, 330, cut, quantizes),
                        {q, cache, cache, blocks, offsets, lengths, sinks, y, Quantized(4 * 64, 3)},
                        AttentionScratchBytes(views, 330, cut)});
    }
  }
}

// Products of many columns and of few, of one matrix and of experts.
void AddProducts(bool int_dot, std::vector<ExecutorCase>* cases) {
  ProductTuning tuning;
  tuning.int_dot = int_dot;
  tuning.gemm_rows = tuning.gemm_columns = 2;
  for (const Type type : {Type::kF16, Type::kQ4_0}) {
    for (const int64_t m : {2, 20}) {
      const Operand w = Weights(type, {96, 37}), x = Floats({96, m}), y = Floats({37, m});
      const Product p = {w.view, false, x.view, std::nullopt, y.view, std::nullopt};
      ExecutorCase c = {
          "matmul", {}, {w, x, w, y}, std::max<uint64_t>(ScratchBytes(p, tuning), 16)};
      if (quant::IsQuantized(type)) c.runs.push_back(QuantizeRun(p));
      c.runs.push_back(ProductRun(p, tuning));
      cases->push_back(c);
    }
    for (const int64_t m : {2, 6}) {
      const Operand w = Weights(type, {96, 37, 2}), x = Floats({96, 1, m});
      const Operand y = Floats({37, 2, m});
      const Operand ids = Ints({2, m}, {0, 1, 1, 0});
      const Product p = {w.view, false, x.view, std::nullopt, y.view, ids.view, 2};
      ProductTuning few = tuning;
      few.gemv_columns = 4;  // the least for which experts use lists
      ExecutorCase c = {"moe_matmul", {}, {w, x, ids, w, y}, ScratchBytes(p, few) + 16};
      if (quant::IsQuantized(type)) c.runs.push_back(QuantizeRun(p));
      if (NeedsLists(p, few)) c.runs.push_back(ListColumnsRun(p, few));
      c.runs.push_back(ProductRun(p, few));
      cases->push_back(c);
    }
  }
}

}  // namespace

std::vector<ExecutorCase> ExecutorCases(bool int_dot) {
  std::vector<ExecutorCase> cases;
  AddElementwise(&cases);
  AddNorms(&cases);
  AddGluQuantize(&cases);
  AddRows(&cases);
  AddAttention(&cases);
  AddProducts(false, &cases);
  if (int_dot) AddProducts(true, &cases);
  return cases;
}

}  // namespace trine::vulkan
