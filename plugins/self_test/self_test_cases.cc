// The cases of a device's self-test.
#include "plugins/self_test/self_test_parts.h"

namespace trine::self_test {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using Tensor = TestTensor;

// Uses each kind of shader once: one column and many, integer and float, plain and packed weights,
// a prompt wider than any tile.
void AddProducts(const TakeGraph& take, Random* random) {
  const struct {
    Type type;
    int64_t columns;
    bool packed;
  } cases[] = {{Type::kQ8_0, 1, false}, {Type::kQ4_K, 1, false},  {Type::kF16, 1, false},
               {Type::kF32, 1, false},  {Type::kF32, 20, false},  {Type::kQ4_0, 20, false},
               {Type::kF16, 20, false}, {Type::kQ8_0, 70, false}, {Type::kQ8_0, 1, true},
               {Type::kQ4_K, 20, true}, {Type::kF16, 20, true},   {Type::kQ6_K, 70, true}};
  for (const auto& c : cases) {
    Tensor w(c.type, {512, 24}), x(Type::kF32, {512, c.columns}), bias(Type::kF32, {24});
    Tensor y(Type::kF32, {24, c.columns});
    w.Weights(random).Packed(c.packed);
    // A bias shows only in results of its own size, an exponent that goes wrong only in others.
    x.Floats(c.columns == 1 ? Fill::kUniform : Fill::kWide, random);
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

// Adds ops that move, convert and choose values.
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
  cache.Attend(&q, &y, nullptr, {}, &graph);
  take(graph);
}

// Adds what models of embeddings do and others do not: norms with a bias, GELU, and attention to
// later tokens. A software device makes a program of its own for each.
void AddEncoders(const TakeGraph& take, Random* random) {
  Tensor x(Type::kF32, {300, 3}), weight(Type::kF32, {300}), bias(Type::kF32, {300});
  Tensor up(Type::kF32, {300, 3}), y(Type::kF32, {300, 3});
  for (Tensor* tensor : {&x, &weight, &bias, &up}) tensor->Floats(Fill::kUniform, random);
  AddOp(take, "layer_norm", TRINE_OP_LAYER_NORM, {&x, &weight, &bias}, {&y},
        trine_norm_attr{0, 1e-6f}, [&] {
          reference::LayerNorm(x.view, &weight.view, &bias.view, 1e-6f, y.view,
                               reference::AllRows(y.view));
        });
  AddOp(take, "activation", TRINE_OP_ACTIVATION, {&x}, {&y},
        trine_activation_attr{0, TRINE_ACT_GELU}, [&] {
          reference::Activation(x.view, reference::ActivationKind::kGelu, y.view,
                                reference::AllRows(y.view));
        });
  AddOp(take, "glu", TRINE_OP_GLU, {&x, &up}, {&y}, trine_glu_attr{0, TRINE_ACT_GELU, 0, 0}, [&] {
    reference::GluParams params;
    params.kind = reference::GluKind::kGelu;
    reference::Glu(x.view, up.view, params, y.view, reference::AllRows(y.view));
  });
  TestCache cache(Type::kF32, 1, 40, random);
  Tensor q(Type::kF32, {64, 4, 40}), out(Type::kF32, {64, 4, 40});
  q.Floats(Fill::kUniform, random);
  TestGraph graph("attention");
  cache.Attend(&q, &out, nullptr, NotCausal(), &graph);
  take(graph);
}

// A product that reads quantised activations: weights [k, 24] and results for `columns` columns.
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

// Adds a sum and its norm, which is quantised, once without and once with its floats.
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

// Adds a glu, which is quantised, for two experts of each token.
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
  cache.Attend(&q, &y, nullptr, {}, &graph);
  product.Read(&x, &graph);
  take(graph);
}

// q, k and v of three tokens, with the cache they are stored in.
struct Heads {
  Heads(Type keys_type, Type values_type, Random* random)
      : q(Type::kF32, {64, 4, 3}),
        k(Type::kF32, {64, 2, 3}),
        v(Type::kF32, {64, 2, 3}),
        table(Type::kF32, {48, 3}),  // less than a head: the rest is not rotated
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

// Adds each op by itself. Products come first: a test that is cut short should have tried them.
void AddOpCases(const TakeGraph& take, Random* random) {
  AddProducts(take, random);
  AddExperts(take, random);
  AddFloats(take, random);
  AddMoves(take, random);
  AddEncoders(take, random);
  AddRouting(take, random);
  // Once with chunks that are joined, and once with a single chunk.
  AddAttention(take, random, Type::kF16, 5, 3);
  AddAttention(take, random, Type::kQ8_KV, 5, 9);
  AddAttention(take, random, Type::kF16, 3, 9);
}

// Adds ops that fusion runs together, and ops that quantise their results for the next product.
void AddGroupCases(const TakeGraph& take, Random* random) {
  AddNorms(take, random);
  AddGlus(take, random);
  AddExpertsOfGlu(take, random);
  // With chunks that are joined, with a single chunk, and with enough rows for a long prompt's
  // path.
  AddAttention(take, random, 5, 3);
  AddAttention(take, random, 3, 9);
  AddAttention(take, random, 1, 512);
  AddRotations(take, random);
}

}  // namespace

void AddCases(const TakeGraph& take) {
  Random random(20261115);
  AddOpCases(take, &random);
  AddGroupCases(take, &random);
}

}  // namespace trine::self_test
