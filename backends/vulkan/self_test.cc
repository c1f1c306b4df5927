#include "backends/vulkan/self_test.h"

#include "backends/vulkan/self_test_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using Tensor = TestTensor;
using Runner = SelfTestRunner;

// Each kind of shader once: one column and many, integer and float, plain and packed weights, a
// prompt wider than any tile.
void CheckProducts(Runner* runner, Random* random) {
  const struct {
    Type type;
    int64_t columns;
    bool packed;
  } cases[] = {{Type::kQ8_0, 1, false},  {Type::kQ4_K, 1, false}, {Type::kF16, 1, false},
               {Type::kQ4_0, 20, false}, {Type::kF16, 20, false}, {Type::kQ8_0, 70, false},
               {Type::kQ8_0, 1, true},   {Type::kQ4_K, 20, true}, {Type::kF16, 20, true},
               {Type::kQ6_K, 70, true}};
  for (const auto& c : cases) {
    Tensor w(c.type, {512, 24}), x(Type::kF32, {512, c.columns}), bias(Type::kF32, {24});
    Tensor y(Type::kF32, {24, c.columns});
    w.Weights(random).Packed(c.packed);
    x.Floats(Fill::kWide, random);
    bias.Floats(Fill::kUniform, random);
    runner->Check(c.packed ? "matmul of packed weights" : "matmul", TRINE_OP_MATMUL,
                  {&w, &x, &bias}, {&y}, NoAttr{}, [&] {
                    reference::Matmul(w.view, x.view, &bias.view, y.view, {0, 24});
                  });
  }
}

void CheckExperts(Runner* runner, Random* random) {
  const struct {
    Type type;
    int64_t tokens;
    bool packed;
  } cases[] = {{Type::kQ4_K, 1, false}, {Type::kF16, 20, false}, {Type::kQ8_0, 20, true}};
  for (const auto& c : cases) {
    Tensor w(c.type, {256, 24, 4}), x(Type::kF32, {256, 1, c.tokens});
    Tensor ids(Type::kI32, {2, c.tokens}), y(Type::kF32, {24, 2, c.tokens});
    w.Weights(random).Packed(c.packed);
    x.Floats(Fill::kWide, random);
    for (int64_t i = 0; i < 2 * c.tokens; ++i) {
      reinterpret_cast<int32_t*>(ids.view.data)[i] = static_cast<int32_t>((i + i / 5) % 4);
    }
    runner->Check("moe_matmul", TRINE_OP_MOE_MATMUL, {&w, &x, &ids}, {&y}, NoAttr{}, [&] {
      reference::MoeMatmul(w.view, x.view, ids.view, nullptr, y.view, {0, 24});
    });
  }
}

void CheckFloats(Runner* runner, Random* random) {
  Tensor x(Type::kF32, {300, 3}), weight(Type::kF32, {300}), up(Type::kF32, {300, 3});
  Tensor y(Type::kF32, {300, 3});
  x.Floats(Fill::kWide, random);
  weight.Floats(Fill::kUniform, random);
  up.Floats(Fill::kUniform, random);
  runner->Check("rms_norm", TRINE_OP_RMS_NORM, {&x, &weight}, {&y}, trine_norm_attr{0, 1e-6f}, [&] {
    reference::RmsNorm(x.view, &weight.view, 1e-6f, y.view, reference::AllRows(y.view));
  });
  runner->Check("glu", TRINE_OP_GLU, {&x, &up}, {&y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0},
                [&] { reference::Glu(x.view, up.view, {}, y.view, reference::AllRows(y.view)); });
  runner->Check("softcap", TRINE_OP_SOFTCAP, {&up}, {&y}, trine_scale_attr{0, 30.0f},
                [&] { reference::Softcap(up.view, 30.0f, y.view, reference::AllRows(y.view)); });
  Tensor heads(Type::kF32, {64, 4, 3}), table(Type::kF32, {64, 3}), turned(Type::kF32, {64, 4, 3});
  heads.Floats(Fill::kUniform, random);
  table.Floats(Fill::kUniform, random);
  runner->Check("rope", TRINE_OP_ROPE, {&heads, &table}, {&turned},
                trine_rope_attr{0, TRINE_ROPE_HALVES}, [&] {
                  reference::Rope(heads.view, table.view, reference::RopeMode::kHalves, turned.view,
                                  reference::AllRows(turned.view));
                });
}

// A cache of all positions of its blocks, as a device would have stored them.
void FillCache(Tensor* cache, Random* random) {
  const reference::View& view = cache->view;
  const int64_t positions = view.dims[1] * view.dims[3];
  Tensor x(Type::kF32, {view.dims[0], view.dims[2], positions}), slots(Type::kI32, {positions});
  x.Floats(Fill::kUniform, random);
  for (int64_t i = 0; i < positions; ++i) {
    reinterpret_cast<int32_t*>(slots.view.data)[i] = static_cast<int32_t>(i);
  }
  reference::KvStore(x.view, slots.view, view, reference::AllRows(x.view));
}

void CheckAttention(Runner* runner, Random* random, Type cache, int64_t tokens) {
  constexpr int64_t kBlock = 64, kBlocks = 5;
  Tensor x(Type::kF32, {64, 2, 7}), slots(Type::kI32, {7});
  Tensor k(cache, {64, kBlock, 2, kBlocks}), v(cache, {64, kBlock, 2, kBlocks});
  FillCache(&k, random);
  FillCache(&v, random);
  x.Floats(Fill::kUniform, random);
  slots.Ints({3, 0, 70, 319, 64, 1, -1});
  runner->Check("kv_store", TRINE_OP_KV_STORE, {&x, &slots}, {&k}, NoAttr{}, [&] {
    reference::KvStore(x.view, slots.view, k.view, reference::AllRows(x.view));
  });
  Tensor q(Type::kF32, {64, 4, tokens}), y(Type::kF32, {64, 4, tokens});
  Tensor blocks(Type::kI32, {kBlocks, 1}), offsets(Type::kI32, {2}), lengths(Type::kI32, {1});
  q.Floats(Fill::kUniform, random);
  blocks.Ints({4, 0, 2, 1, 3});
  offsets.Ints({0, static_cast<int32_t>(tokens)});
  lengths.Ints({300});
  reference::AttentionParams params;
  params.scale = 0.125f;
  runner->Check("attention", TRINE_OP_ATTENTION, {&q, &k, &v, &blocks, &offsets, &lengths}, {&y},
                trine_attention_attr{0, TRINE_ATTENTION_CAUSAL, params.scale, 0.0f, 0}, [&] {
                  const reference::AttentionInputs inputs{
                      q.view, k.view, v.view, blocks.view, offsets.view, lengths.view, nullptr};
                  reference::Attention(inputs, params, y.view, reference::AllRows(y.view));
                });
}

}  // namespace

SelfTestResult RunSelfTest(trine_device* device) {
  Random random(20261115);
  Runner runner(device);
  CheckFloats(&runner, &random);
  CheckProducts(&runner, &random);
  CheckExperts(&runner, &random);
  CheckAttention(&runner, &random, Type::kF16, 3);
  CheckAttention(&runner, &random, Type::kQ8_KV, 40);
  return runner.result();
}

}  // namespace trine::vulkan
