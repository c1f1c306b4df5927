#include "backends/common/self_test_cases.h"

namespace trine::backends {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using Tensor = TestTensor;

// What reads quantised activations: weights of [k, 24] and the results of `columns` columns.
struct Reader {
  Reader(Type type, int64_t k, int64_t columns, Random* random)
      : w(type, {k, 24}), y(Type::kF32, {24, columns}) {
    w.Weights(random);
  }
  void Read(Tensor* x, TestGraph* graph) {
    graph->Op(TRINE_OP_MATMUL, {&w, x}, {&y}, NoAttr{}, [this, x] {
      reference::Matmul(w.view, x->view, nullptr, y.view, {0, 24});
    });
  }

  Tensor w, y;
};

// A sum, its norm, and the norm quantised: by itself, or with its floats as well.
void AddNorms(const TakeGraph& take, Random* random) {
  for (const bool centred : {false, true}) {
    Tensor a(Type::kF32, {512, 3}), b(Type::kF32, {512, 3}), sum(Type::kF32, {512, 3});
    Tensor weight(Type::kF32, {512}), y(Type::kF32, {512, 3});
    a.Floats(Fill::kWide, random);
    b.Floats(Fill::kUniform, random);
    weight.Floats(Fill::kUniform, random);
    y.temp = !centred;
    Reader product(Type::kQ8_0, 512, 3, random);
    TestGraph graph(centred ? "add, layer_norm, matmul" : "add, rms_norm, matmul");
    graph.Op(TRINE_OP_ADD, {&a, &b}, {&sum}, NoAttr{},
             [&] { reference::Add(a.view, b.view, sum.view, reference::AllRows(sum.view)); });
    if (centred) {
      graph.Op(TRINE_OP_LAYER_NORM, {&sum, &weight, nullptr}, {&y}, trine_norm_attr{0, 1e-5f}, [&] {
        reference::LayerNorm(sum.view, &weight.view, nullptr, 1e-5f, y.view,
                             reference::AllRows(y.view));
      });
    } else {
      graph.Op(TRINE_OP_RMS_NORM, {&sum, &weight}, {&y}, trine_norm_attr{0, 1e-5f}, [&] {
        reference::RmsNorm(sum.view, &weight.view, 1e-5f, y.view, reference::AllRows(y.view));
      });
    }
    product.Read(&y, &graph);
    take(graph);
  }
}

void AddGlus(const TakeGraph& take, Random* random) {
  for (const bool writes : {false, true}) {
    Tensor gate(Type::kF32, {512, 20}), up(Type::kF32, {512, 20}), y(Type::kF32, {512, 20});
    gate.Floats(Fill::kUniform, random);
    up.Floats(Fill::kWide, random);
    y.temp = !writes;
    Reader product(Type::kQ4_K, 512, 20, random);
    TestGraph graph("glu, matmul");
    graph.Op(TRINE_OP_GLU, {&gate, &up}, {&y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0},
             [&] { reference::Glu(gate.view, up.view, {}, y.view, reference::AllRows(y.view)); });
    product.Read(&y, &graph);
    take(graph);
  }
}

// The same for two experts of each token.
void AddExpertsOfGlu(const TakeGraph& take, Random* random) {
  Tensor gate(Type::kF32, {256, 2, 3}), up(Type::kF32, {256, 2, 3}), y(Type::kF32, {256, 2, 3});
  Tensor w(Type::kQ8_0, {256, 24, 4}), ids(Type::kI32, {2, 3}), made(Type::kF32, {24, 2, 3});
  gate.Floats(Fill::kUniform, random);
  up.Floats(Fill::kWide, random);
  w.Weights(random);
  ids.Ints({3, 0, 1, 2, 0, 1});
  y.Temp();
  TestGraph graph("glu, moe_matmul");
  graph.Op(TRINE_OP_GLU, {&gate, &up}, {&y}, trine_glu_attr{0, TRINE_ACT_GELU, 0, 0}, [&] {
    const reference::GluParams params{reference::GluKind::kGelu, 0, 0};
    reference::Glu(gate.view, up.view, params, y.view, reference::AllRows(y.view));
  });
  graph.Op(TRINE_OP_MOE_MATMUL, {&w, &y, &ids}, {&made}, NoAttr{}, [&] {
    reference::MoeMatmul(w.view, y.view, ids.view, nullptr, made.view, {0, 24});
  });
  take(graph);
}

void AddAttention(const TakeGraph& take, Random* random, int32_t blocks, int32_t tokens) {
  TestCache cache(Type::kF16, blocks, tokens, random);
  Tensor q(Type::kF32, {64, 4, tokens}), y(Type::kF32, {64, 4, tokens}), x(&y, {256, tokens});
  q.Floats(Fill::kUniform, random);
  Reader product(Type::kQ8_0, 256, tokens, random);
  TestGraph graph("attention, matmul");
  cache.Attend(&q, &y, &graph);
  product.Read(&x, &graph);
  take(graph);
}

// q, k and v of three tokens on their way to the cache.
struct Heads {
  Heads(Type keys_type, Type values_type, Random* random)
      : q(Type::kF32, {64, 4, 3}),
        k(Type::kF32, {64, 2, 3}),
        v(Type::kF32, {64, 2, 3}),
        table(Type::kF32, {48, 3}),  // less than a head: the rest passes through
        slots(Type::kI32, {3}),
        rotated_q(Type::kF32, {64, 4, 3}),
        rotated_k(Type::kF32, {64, 2, 3}),
        keys(keys_type, {64, 64, 2, 2}),
        values(values_type, {64, 64, 2, 2}) {
    for (Tensor* tensor : {&q, &k, &v, &table}) tensor->Floats(Fill::kUniform, random);
    slots.Ints({3, 70, -1});
    FillCache(&keys, random);
    FillCache(&values, random);
  }
  void Rotate(Tensor* x, Tensor* y, TestGraph* graph) {
    graph->Op(TRINE_OP_ROPE, {x, &table}, {y}, trine_rope_attr{0, TRINE_ROPE_HALVES}, [this, x, y] {
      reference::Rope(x->view, table.view, reference::RopeMode::kHalves, y->view,
                      reference::AllRows(y->view));
    });
  }
  void Store(Tensor* x, Tensor* cache, TestGraph* graph) {
    graph->Op(TRINE_OP_KV_STORE, {x, &slots}, {cache}, NoAttr{}, [this, x, cache] {
      reference::KvStore(x->view, slots.view, cache->view, reference::AllRows(x->view));
    });
  }

  Tensor q, k, v, table, slots, rotated_q, rotated_k, keys, values;
};

void AddRotations(const TakeGraph& take, Random* random) {
  for (const bool writes : {false, true}) {
    Heads h(Type::kF16, Type::kF16, random);
    h.rotated_k.temp = !writes;
    TestGraph graph("rope, rope, kv_store, kv_store");
    h.Rotate(&h.q, &h.rotated_q, &graph);
    h.Rotate(&h.k, &h.rotated_k, &graph);
    h.Store(&h.rotated_k, &h.keys, &graph);
    h.Store(&h.v, &h.values, &graph);
    take(graph);
  }
  Heads h(Type::kF32, Type::kBF16, random);
  TestGraph rotations("rope, rope"), stores("kv_store, kv_store");
  h.Rotate(&h.q, &h.rotated_q, &rotations);
  h.Rotate(&h.k, &h.rotated_k, &rotations);
  take(rotations);
  h.Store(&h.k, &h.keys, &stores);
  h.Store(&h.v, &h.values, &stores);
  take(stores);
}

}  // namespace

void AddGroupCases(const TakeGraph& take, Random* random) {
  AddNorms(take, random);
  AddGlus(take, random);
  AddExpertsOfGlu(take, random);
  // In chunks that are joined, in one go, and with as many rows as long prompts have.
  AddAttention(take, random, 5, 3);
  AddAttention(take, random, 3, 9);
  AddAttention(take, random, 1, 512);
  AddRotations(take, random);
}

}  // namespace trine::backends
