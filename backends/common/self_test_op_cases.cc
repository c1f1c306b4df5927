#include "backends/common/self_test_cases.h"

namespace trine::backends {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using Tensor = TestTensor;

template <class Attr>
void AddOp(const TakeGraph& take, const char* name, uint32_t kind, const std::vector<Tensor*>& in,
           const std::vector<Tensor*>& out, Attr attr, std::function<void()> reference) {
  take(TestGraph(name).Op(kind, in, out, attr, std::move(reference)));
}

// Each kind of shader once: one column and many, integer and float, plain and packed weights, a
// prompt wider than any tile.
void AddProducts(const TakeGraph& take, Random* random) {
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
    AddOp(take, c.packed ? "matmul of packed weights" : "matmul", TRINE_OP_MATMUL, {&w, &x, &bias},
          {&y}, NoAttr{}, [&] {
            reference::Matmul(w.view, x.view, &bias.view, y.view, {0, 24});
          });
  }
}

void AddExperts(const TakeGraph& take, Random* random) {
  const struct {
    Type type;
    int64_t tokens;
    bool packed;
  } cases[] = {{Type::kQ4_K, 1, false},
               {Type::kF16, 1, false},
               {Type::kF16, 20, false},
               {Type::kQ8_0, 20, true}};
  for (const auto& c : cases) {
    Tensor w(c.type, {256, 24, 4}), x(Type::kF32, {256, 1, c.tokens});
    Tensor ids(Type::kI32, {2, c.tokens}), y(Type::kF32, {24, 2, c.tokens});
    w.Weights(random).Packed(c.packed);
    x.Floats(Fill::kWide, random);
    for (int64_t i = 0; i < 2 * c.tokens; ++i) {
      reinterpret_cast<int32_t*>(ids.view.data)[i] = static_cast<int32_t>((i + i / 5) % 4);
    }
    AddOp(take, "moe_matmul", TRINE_OP_MOE_MATMUL, {&w, &x, &ids}, {&y}, NoAttr{}, [&] {
      reference::MoeMatmul(w.view, x.view, ids.view, nullptr, y.view, {0, 24});
    });
  }
}

void AddRouting(const TakeGraph& take, Random* random) {
  Tensor logits(Type::kF32, {40, 3}), ids(Type::kI32, {4, 3}), weights(Type::kF32, {4, 3});
  logits.Floats(Fill::kUniform, random);
  reference::MoeRouteParams params;
  params.normalize = true;
  AddOp(take, "moe_route", TRINE_OP_MOE_ROUTE, {&logits}, {&ids, &weights},
        trine_moe_route_attr{0, TRINE_MOE_SOFTMAX, TRINE_MOE_NORMALIZE, 1.0f}, [&] {
          reference::MoeRoute(logits.view, nullptr, params, ids.view, weights.view, {0, 3});
        });
  Tensor parts(Type::kF32, {70, 4, 3}), shares(Type::kF32, {4, 3}), y(Type::kF32, {70, 3});
  parts.Floats(Fill::kWide, random);
  shares.Floats(Fill::kUniform, random);
  AddOp(take, "moe_combine", TRINE_OP_MOE_COMBINE, {&parts, &shares}, {&y}, NoAttr{}, [&] {
    reference::MoeCombine(parts.view, shares.view, y.view, reference::AllRows(y.view));
  });
}

void AddFloats(const TakeGraph& take, Random* random) {
  Tensor x(Type::kF32, {300, 3}), weight(Type::kF32, {300}), up(Type::kF32, {300, 3});
  Tensor y(Type::kF32, {300, 3});
  x.Floats(Fill::kWide, random);
  weight.Floats(Fill::kUniform, random);
  up.Floats(Fill::kUniform, random);
  AddOp(take, "rms_norm", TRINE_OP_RMS_NORM, {&x, &weight}, {&y}, trine_norm_attr{0, 1e-6f}, [&] {
    reference::RmsNorm(x.view, &weight.view, 1e-6f, y.view, reference::AllRows(y.view));
  });
  AddOp(take, "glu", TRINE_OP_GLU, {&x, &up}, {&y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0},
        [&] { reference::Glu(x.view, up.view, {}, y.view, reference::AllRows(y.view)); });
  AddOp(take, "softcap", TRINE_OP_SOFTCAP, {&up}, {&y}, trine_scale_attr{0, 30.0f},
        [&] { reference::Softcap(up.view, 30.0f, y.view, reference::AllRows(y.view)); });
  Tensor heads(Type::kF32, {64, 4, 3}), table(Type::kF32, {64, 3}), turned(Type::kF32, {64, 4, 3});
  heads.Floats(Fill::kUniform, random);
  table.Floats(Fill::kUniform, random);
  AddOp(take, "rope", TRINE_OP_ROPE, {&heads, &table}, {&turned},
        trine_rope_attr{0, TRINE_ROPE_HALVES}, [&] {
          reference::Rope(heads.view, table.view, reference::RopeMode::kHalves, turned.view,
                          reference::AllRows(turned.view));
        });
}

// Values that are moved, converted and chosen.
void AddMoves(const TakeGraph& take, Random* random) {
  Tensor x(Type::kF32, {300, 3}), halves(Type::kF16, {300, 3});
  x.Floats(Fill::kWide, random);
  AddOp(take, "copy", TRINE_OP_COPY, {&x}, {&halves}, NoAttr{},
        [&] { reference::Copy(x.view, halves.view, reference::AllRows(halves.view)); });
  for (const Type type : {Type::kF16, Type::kQ4_K}) {
    Tensor table(type, {256, 9}), ids(Type::kI32, {3}), rows(Type::kF32, {256, 3});
    table.Weights(random);
    ids.Ints({8, 0, 4});
    AddOp(take, "gather_rows", TRINE_OP_GATHER_ROWS, {&table, &ids}, {&rows}, NoAttr{}, [&] {
      reference::GatherRows(table.view, ids.view, rows.view, reference::AllRows(rows.view));
    });
  }
  Tensor best(Type::kI32, {5, 3}), values(Type::kF32, {5, 3});
  AddOp(take, "top_k", TRINE_OP_TOP_K, {&x}, {&best, &values}, NoAttr{}, [&] {
    reference::TopK(x.view, best.view, values.view, {0, 3});
  });
}

void AddAttention(const TakeGraph& take, Random* random, Type type, int32_t blocks,
                  int32_t tokens) {
  TestCache cache(type, blocks, tokens, random);
  Tensor x(Type::kF32, {64, 2, 7}), slots(Type::kI32, {7});
  x.Floats(Fill::kUniform, random);
  slots.Ints({3, 0, 70, 319, 64, 1, -1});
  AddOp(take, "kv_store", TRINE_OP_KV_STORE, {&x, &slots}, {&cache.k}, NoAttr{},
        [&] { reference::KvStore(x.view, slots.view, cache.k.view, reference::AllRows(x.view)); });
  Tensor q(Type::kF32, {64, 4, tokens}), y(Type::kF32, {64, 4, tokens});
  q.Floats(Fill::kUniform, random);
  TestGraph graph("attention");
  cache.Attend(&q, &y, &graph);
  take(graph);
}

}  // namespace

void FillCache(TestTensor* cache, Random* random) {
  const reference::View& view = cache->view;
  const int64_t positions = view.dims[1] * view.dims[3];
  Tensor x(Type::kF32, {view.dims[0], view.dims[2], positions}), slots(Type::kI32, {positions});
  x.Floats(Fill::kUniform, random);
  for (int64_t i = 0; i < positions; ++i) {
    reinterpret_cast<int32_t*>(slots.view.data)[i] = static_cast<int32_t>(i);
  }
  reference::KvStore(x.view, slots.view, view, reference::AllRows(x.view));
}

TestCache::TestCache(Type type, int32_t blocks, int32_t tokens, Random* random)
    : k(type, {64, 64, 2, blocks}),
      v(type, {64, 64, 2, blocks}),
      table(Type::kI32, {blocks, 1}),
      offsets(Type::kI32, {2}),
      lengths(Type::kI32, {1}) {
  FillCache(&k, random);
  FillCache(&v, random);
  for (int32_t i = 0; i < blocks; ++i) {
    reinterpret_cast<int32_t*>(table.view.data)[i] = blocks - 1 - i;
  }
  offsets.Ints({0, tokens});
  lengths.Ints({64 * blocks - 20});
}

void TestCache::Attend(Tensor* q, Tensor* y, TestGraph* graph) {
  constexpr float kScale = 0.125f;
  graph->Op(TRINE_OP_ATTENTION, {q, &k, &v, &table, &offsets, &lengths}, {y},
            trine_attention_attr{0, TRINE_ATTENTION_CAUSAL, kScale, 0.0f, 0}, [this, q, y] {
              reference::AttentionParams params;
              params.scale = kScale;
              const reference::AttentionInputs inputs{
                  q->view, k.view, v.view, table.view, offsets.view, lengths.view, nullptr};
              reference::Attention(inputs, params, y->view, reference::AllRows(y->view));
            });
}

void AddOpCases(const TakeGraph& take, Random* random) {
  AddFloats(take, random);
  AddMoves(take, random);
  AddProducts(take, random);
  AddExperts(take, random);
  AddRouting(take, random);
  // In chunks that are joined, and in one go.
  AddAttention(take, random, Type::kF16, 5, 3);
  AddAttention(take, random, Type::kQ8_KV, 5, 9);
  AddAttention(take, random, Type::kF16, 3, 9);
}

void AddSelfTestCases(const TakeGraph& take) {
  Random random(20261115);
  AddOpCases(take, &random);
  AddGroupCases(take, &random);
}

}  // namespace trine::backends
