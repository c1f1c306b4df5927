// Every shader by both executors, native and Kompute: the same bits. Whether they are the right
// ones is for the other tests to say.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/vulkan/attention.h"
#include "kernels/vulkan/data_movement.h"
#include "kernels/vulkan/elementwise.h"
#include "kernels/vulkan/norm.h"
#include "kernels/vulkan/products.h"
#include "kernels/vulkan/selection.h"
#include "kernels/vulkan/shaders.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using reference::Random;
using reference::Tensor;
using reference::Type;
using Dims = std::initializer_list<int64_t>;

struct Operand {
  TensorView view;
  Bytes bytes;
};

struct Case {
  std::string name;
  std::vector<KernelRun> runs;
  std::vector<Operand> operands;
  uint64_t scratch_bytes = 0;
};

// A few bytes in, so that offsets count.
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

void AddElementwise(std::vector<Case>* cases) {
  const Operand a = Floats({70, 3}), b = Floats({70}), y = Floats({70, 3}, 2);
  cases->push_back({"add", {AddRun(a.view, b.view, y.view, 64)}, {a, b, y}});
  cases->push_back({"glu", {GluRun(a.view, a.view, {}, y.view, 64)}, {a, a, y}});
  cases->push_back({"softcap", {SoftcapRun(a.view, 30.0f, y.view, 64)}, {a, y}});
  cases->push_back({"rms_norm", {RmsNormRun(a.view, &b.view, 1e-5f, y.view, 64)}, {a, b, y}});
  cases->push_back(
      {"layer_norm", {LayerNormRun(a.view, &b.view, &b.view, 1e-5f, y.view, 64)}, {a, b, b, y}});
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

void AddRows(std::vector<Case>* cases) {
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

void AddAttention(std::vector<Case>* cases) {
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
  const Operand blocks = Ints({6}, {3, 0, 5, 1, 4, 2}), offsets = Ints({2}, {0, 3});
  const Operand lengths = Ints({1}, {330});
  const AttentionViews views = {q.view,       cache.view,   cache.view,  blocks.view,
                                offsets.view, lengths.view, &sinks.view, y.view};
  const reference::AttentionParams params = {0.125f, 0, 0, true};
  for (const AttentionCut& cut : {AttentionCut{64, 4, false}, {64, 8, false}, {64, 4, true}}) {
    cases->push_back({"attention",
                      AttentionRuns(views, params, 330, cut),
                      {q, cache, cache, blocks, offsets, lengths, sinks, y},
                      AttentionScratchBytes(views, 330, cut)});
  }
}

// By many columns and by few, of one matrix and of experts'.
void AddProducts(bool int_dot, std::vector<Case>* cases) {
  ProductTuning tuning;
  tuning.int_dot = int_dot;
  tuning.gemm_rows = tuning.gemm_columns = 2;
  for (const Type type : {Type::kF16, Type::kQ4_0}) {
    for (const int64_t m : {2, 20}) {
      const Operand w = Weights(type, {96, 37}), x = Floats({96, m}), y = Floats({37, m});
      const Product p = {w.view, false, x.view, std::nullopt, y.view, std::nullopt};
      Case c = {"matmul", {}, {w, x, w, y}, std::max<uint64_t>(ScratchBytes(p, tuning), 16)};
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
      few.gemv_columns = 4;  // as many as the experts' lists begin at
      Case c = {"moe_matmul", {}, {w, x, ids, w, y}, ScratchBytes(p, few) + 16};
      if (quant::IsQuantized(type)) c.runs.push_back(QuantizeRun(p));
      if (NeedsLists(p, few)) c.runs.push_back(ListColumnsRun(p, few));
      c.runs.push_back(ProductRun(p, few));
      cases->push_back(c);
    }
  }
}

std::vector<Case> AllCases(bool int_dot) {
  std::vector<Case> cases;
  AddElementwise(&cases);
  AddRows(&cases);
  AddAttention(&cases);
  AddProducts(false, &cases);
  if (int_dot) AddProducts(true, &cases);
  return cases;
}

TEST(KomputeCasesTest, HaveEveryShader) {
  std::set<std::string> run;
  for (const Case& c : AllCases(true)) {
    for (const KernelRun& r : c.runs) run.insert(r.shader->name);
  }
  for (const Shader* shader : AllShaders()) EXPECT_TRUE(run.contains(shader->name)) << shader->name;
}

class KomputeTest : public ShaderTest {
 protected:
  void SetUp() override {
    if (!ExecutorIsBuilt(Executor::kKompute)) GTEST_SKIP() << "a build without Kompute";
    ShaderTest::SetUp();
  }

  std::vector<Bytes> Run(const Case& c, Executor executor) {
    std::vector<Bytes> bytes;
    for (const Operand& operand : c.operands) bytes.push_back(operand.bytes);
    std::vector<Bytes*> pointers;
    for (Bytes& operand : bytes) pointers.push_back(&operand);
    runner_->tuning().executor = executor;
    const absl::Status status = runner_->Run(c.runs, pointers, c.scratch_bytes);
    runner_->tuning().executor = Executor::kNative;
    EXPECT_TRUE(status.ok()) << c.name << ": " << status;
    return bytes;
  }
};

TEST_F(KomputeTest, EqualsTheNativeExecutor) {
  for (const Case& c : AllCases(runner_->device().caps().int_dot)) {
    const std::vector<Bytes> native = Run(c, Executor::kNative),
                             kompute = Run(c, Executor::kKompute);
    bool written = false;
    for (size_t i = 0; i < native.size(); ++i) {
      EXPECT_EQ(Difference(kompute[i], native[i]), "") << c.name << ", operand " << i;
      written |= native[i] != c.operands[i].bytes;
    }
    EXPECT_TRUE(written) << c.name;
  }
}

TEST_F(KomputeTest, RefusesWhatTheDeviceCantDo) {
  std::vector<Case> cases;
  AddElementwise(&cases);
  Case& c = cases.front();
  c.runs.front().constants[0] = 1u << 20;
  Bytes a = c.operands[0].bytes, b = c.operands[1].bytes, y = c.operands[2].bytes;
  runner_->tuning().executor = Executor::kKompute;
  const absl::Status status = runner_->Run(c.runs, {&a, &b, &y});
  runner_->tuning().executor = Executor::kNative;
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace trine::vulkan
