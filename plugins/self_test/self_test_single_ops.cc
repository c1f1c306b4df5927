// The graphs that the host adds for devices of other authors: what AddCases leaves to the ops
// around it, by itself. A device may have a few ops and types of weights only.
#include "plugins/self_test/self_test_parts.h"
#include "trine/sdk/dtype.h"

namespace trine::self_test {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using reference::AllRows;
using Tensor = TestTensor;

void AddEveryType(const TakeGraph& take, Random* random) {
  for (const Type type : quant::kAllTypes) {
    if (type == Type::kI32 || type == Type::kQ8_KV) continue;  // not for weights
    for (const int64_t columns : {1, 9}) {
      Tensor w(type, {256, 17}), x(Type::kF32, {256, columns}), bias(Type::kF32, {17});
      Tensor y(Type::kF32, {17, columns});
      w.Weights(random);
      x.Floats(Fill::kUniform, random);
      bias.Floats(Fill::kUniform, random);
      AddOp(take, std::string("matmul of ") + sdk::DtypeName(static_cast<uint32_t>(type)),
            TRINE_OP_MATMUL, {&w, &x, &bias}, {&y}, NoAttr{}, [&] {
              reference::Matmul(w.view, x.view, &bias.view, y.view, {0, 17});
            });
    }
  }
}

void AddElementWise(const TakeGraph& take, Random* random) {
  Tensor a(Type::kF32, {300, 3}), b(Type::kF32, {300, 3}), y(Type::kF32, {300, 3});
  Tensor brief(Type::kBF16, {300, 3});
  a.Floats(Fill::kUniform, random);
  b.Floats(Fill::kUniform, random);
  AddOp(take, "add", TRINE_OP_ADD, {&a, &b}, {&y}, NoAttr{},
        [&] { reference::Add(a.view, b.view, y.view, AllRows(y.view)); });
  AddOp(take, "mul", TRINE_OP_MUL, {&a, &b}, {&y}, NoAttr{},
        [&] { reference::Mul(a.view, b.view, y.view, AllRows(y.view)); });
  AddOp(take, "scale", TRINE_OP_SCALE, {&a}, {&y}, trine_scale_attr{0, 0.3f},
        [&] { reference::Scale(a.view, 0.3f, y.view, AllRows(y.view)); });
  AddOp(take, "copy", TRINE_OP_COPY, {&a}, {&brief}, NoAttr{},
        [&] { reference::Copy(a.view, brief.view, AllRows(brief.view)); });
  const struct {
    uint32_t abi;
    reference::ActivationKind kind;
  } activations[] = {{TRINE_ACT_SILU, reference::ActivationKind::kSilu},
                     {TRINE_ACT_RELU, reference::ActivationKind::kRelu},
                     {TRINE_ACT_TANH, reference::ActivationKind::kTanh}};
  for (const auto& activation : activations) {
    AddOp(take, "activation", TRINE_OP_ACTIVATION, {&a}, {&y},
          trine_activation_attr{0, activation.abi},
          [&] { reference::Activation(a.view, activation.kind, y.view, AllRows(y.view)); });
  }
  reference::GluParams clamped;
  clamped.kind = reference::GluKind::kClampedSwiglu;
  AddOp(take, "glu", TRINE_OP_GLU, {&a, &b}, {&y},
        trine_glu_attr{0, TRINE_ACT_SWIGLU_CLAMPED, clamped.alpha, clamped.limit},
        [&] { reference::Glu(a.view, b.view, clamped, y.view, AllRows(y.view)); });
}

void AddInterleavedRope(const TakeGraph& take, Random* random) {
  Tensor x(Type::kF32, {64, 4, 3}), table(Type::kF32, {64, 3}), y(Type::kF32, {64, 4, 3});
  x.Floats(Fill::kUniform, random);
  table.Floats(Fill::kUniform, random);
  AddOp(take, "rope", TRINE_OP_ROPE, {&x, &table}, {&y}, trine_rope_attr{0, TRINE_ROPE_INTERLEAVED},
        [&] {
          reference::Rope(x.view, table.view, reference::RopeMode::kInterleaved, y.view,
                          AllRows(y.view));
        });
}

void AddSpecialAttention(const TakeGraph& take, Random* random) {
  reference::AttentionParams narrow, capped;
  narrow.window = 100;
  capped.softcap = 20.0f;
  for (const reference::AttentionParams& params : {narrow, capped}) {
    TestCache cache(Type::kF16, 5, 3, random);
    Tensor q(Type::kF32, {64, 4, 3}), sinks(Type::kF32, {4}), y(Type::kF32, {64, 4, 3});
    q.Floats(Fill::kUniform, random);
    sinks.Floats(Fill::kUniform, random);
    TestGraph graph("attention");
    cache.Attend(&q, &y, params.window != 0 ? &sinks : nullptr, params, &graph);
    take(graph);
  }
}

void AddOtherRouting(const TakeGraph& take, Random* random) {
  const struct {
    uint32_t abi;
    reference::MoeScoring scoring;
  } ways[] = {{TRINE_MOE_SIGMOID, reference::MoeScoring::kSigmoid},
              {TRINE_MOE_SOFTMAX_SELECTED, reference::MoeScoring::kSelectedSoftmax}};
  for (const auto& way : ways) {
    Tensor logits(Type::kF32, {40, 3}), bias(Type::kF32, {40});
    Tensor ids(Type::kI32, {4, 3}), weights(Type::kF32, {4, 3});
    logits.Floats(Fill::kUniform, random);
    bias.Floats(Fill::kUniform, random);
    reference::MoeRouteParams params;
    params.scoring = way.scoring;
    params.scale = 2.5f;
    AddOp(take, "moe_route", TRINE_OP_MOE_ROUTE, {&logits, &bias}, {&ids, &weights},
          trine_moe_route_attr{0, way.abi, 0, params.scale}, [&] {
            reference::MoeRoute(logits.view, &bias.view, params, ids.view, weights.view, {0, 3});
          });
  }
}

}  // namespace

void AddSingleOps(const TakeGraph& take) {
  Random random(20261119);
  AddEveryType(take, &random);
  AddElementWise(take, &random);
  AddInterleavedRope(take, &random);
  AddSpecialAttention(take, &random);
  AddOtherRouting(take, &random);
}

}  // namespace trine::self_test
