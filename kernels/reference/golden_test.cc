// Pins the bits of every operation. Each case runs over all kinds of input, in three ways: whole,
// with its range cut into pieces that run backwards, and with denormals flushed. All give the same
// hash.
//
// A changed hash is a changed contract: kNumericsVersion rises and docs/numerics.md says why.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::reference {
namespace {

// Runs an operation over [0, rows), whole or in pieces.
using Runner = std::function<void(int64_t rows, const std::function<void(Range)>& operation)>;

void Whole(int64_t rows, const std::function<void(Range)>& operation) { operation({0, rows}); }

void PiecesBackwards(int64_t rows, const std::function<void(Range)>& operation) {
  for (int64_t end = rows; end > 0; end -= 3) operation({std::max<int64_t>(end - 3, 0), end});
}

class Case {
 public:
  Case(Fill fill, Runner runner, quant::Hash* hash)
      : fill_(fill), random_(static_cast<uint64_t>(fill) + 100), runner_(runner), hash_(hash) {}

  void FillInput(Tensor& tensor) { tensor.FillWith(fill_, &random_); }
  void FillWeights(Tensor& tensor) {
    tensor.FillWeights(fill_ == Fill::kWide || fill_ == Fill::kTiny, &random_);
  }
  // Fills a learned vector. Its values do not depend on the kind of activations.
  void FillParameters(Tensor& tensor) { tensor.FillWith(Fill::kUniform, &random_); }

  void Run(int64_t rows, const std::function<void(Range)>& operation) { runner_(rows, operation); }
  void Run(const View& dst, const std::function<void(Range)>& operation) {
    runner_(Rows(dst), operation);
  }
  void Check(const Tensor& out) { hash_->Add(out.bytes().data(), out.bytes().size()); }

 private:
  Fill fill_;
  Random random_;
  Runner runner_;
  quant::Hash* hash_;
};

void CopyCase(Case& c) {
  for (Type to : {Type::kF32, Type::kF16, Type::kBF16}) {
    Tensor src(Type::kF32, {33, 5}), dst(to, {33, 5}), back(Type::kF32, {33, 5});
    c.FillInput(src);
    c.Run(dst, [&](Range rows) { Copy(src, dst, rows); });
    c.Run(back, [&](Range rows) { Copy(dst, back, rows); });
    c.Check(dst);
    c.Check(back);
  }
}

void GatherRowsCase(Case& c) {
  for (Type type : quant::kWeightTypes) {
    Tensor table(type, {512, 7}), ids(Type::kI32, {5}), dst(Type::kF32, {512, 5});
    c.FillWeights(table);
    ids.Set({6, 0, 3, 3, 7});
    c.Run(dst, [&](Range rows) { GatherRows(table, ids, dst, rows); });
    c.Check(dst);
  }
}

void ElementwiseCase(Case& c) {
  Tensor a(Type::kF32, {37, 5, 2}), b(Type::kF32, {37, 1, 2}), dst(Type::kF32, {37, 5, 2});
  c.FillInput(a);
  c.FillInput(b);
  c.Run(dst, [&](Range rows) { Add(a, b, dst, rows); });
  c.Check(dst);
  c.Run(dst, [&](Range rows) { Mul(a, b, dst, rows); });
  c.Check(dst);
  c.Run(dst, [&](Range rows) { Scale(a, -0.3f, dst, rows); });
  c.Check(dst);
  c.Run(dst, [&](Range rows) { Softcap(a, 30.0f, dst, rows); });
  c.Check(dst);
  for (ActivationKind kind : {ActivationKind::kSilu, ActivationKind::kGelu, ActivationKind::kRelu,
                              ActivationKind::kTanh}) {
    c.Run(dst, [&](Range rows) { Activation(a, kind, dst, rows); });
    c.Check(dst);
  }
}

void GluCase(Case& c) {
  Tensor gate(Type::kF32, {65, 4}), up(Type::kF32, {65, 4}), dst(Type::kF32, {65, 4});
  c.FillInput(gate);
  c.FillInput(up);
  for (GluKind kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
    c.Run(dst, [&](Range rows) { Glu(gate, up, {kind}, dst, rows); });
    c.Check(dst);
  }
}

void NormCase(Case& c) {
  for (int64_t n : {31, 100, 896}) {
    Tensor x(Type::kF32, {n, 4}), w(Type::kF32, {n}), b(Type::kF32, {n}), y(Type::kF32, {n, 4});
    c.FillInput(x);
    c.FillParameters(w);
    c.FillParameters(b);
    c.Run(y, [&](Range rows) { RmsNorm(x, &w.view(), 1e-6f, y, rows); });
    c.Check(y);
    c.Run(y, [&](Range rows) { RmsNorm(x, nullptr, 0.0f, y, rows); });
    c.Check(y);
    c.Run(y, [&](Range rows) { LayerNorm(x, &w.view(), &b.view(), 1e-5f, y, rows); });
    c.Check(y);
    c.Run(y, [&](Range rows) { LayerNorm(x, nullptr, nullptr, 0.0f, y, rows); });
    c.Check(y);
  }
}

void MatmulCase(Case& c, Type type) {
  for (int64_t k : {int64_t{1280}, quant::IsQuantized(type) ? int64_t{256} : int64_t{101}}) {
    const int64_t n = 45, m = 2;
    Tensor w(type, {k, n}), x(Type::kF32, {k, m}), b(Type::kF32, {n}), y(Type::kF32, {n, m});
    c.FillWeights(w);
    c.FillInput(x);
    c.FillParameters(b);
    c.Run(n, [&](Range features) { Matmul(w, x, nullptr, y, features); });
    c.Check(y);
    c.Run(n, [&](Range features) { Matmul(w, x, &b.view(), y, features); });
    c.Check(y);
  }
}

void RopeCase(Case& c) {
  Tensor x(Type::kF32, {20, 3, 4}), table(Type::kF32, {16, 4}), dst(Type::kF32, {20, 3, 4});
  c.FillInput(x);
  c.FillParameters(table);
  for (RopeMode mode : {RopeMode::kInterleaved, RopeMode::kHalves}) {
    c.Run(dst, [&](Range rows) { Rope(x, table, mode, dst, rows); });
    c.Check(dst);
  }
}

// Stores 700 positions, then lets three tokens of one sequence and one of another attend to them.
void AttentionCase(Case& c, Type type) {
  const int64_t width = 64, width_v = 32, heads = 4, kv_heads = 2, positions = 64, blocks = 14;
  Tensor k(type, {width, positions, kv_heads, blocks});
  Tensor v(type, {width_v, positions, kv_heads, blocks});
  Tensor slots(Type::kI32, {positions * blocks});
  for (int32_t i = 0; i < positions * blocks; ++i) I32Row(slots, 0)[i] = i;
  for (Tensor* cache : {&k, &v}) {
    Tensor src(Type::kF32, {cache->view().dims[0], kv_heads, positions * blocks});
    c.FillInput(src);
    c.Run(src, [&](Range rows) { KvStore(src, slots, *cache, rows); });
    c.Check(*cache);
  }
  Tensor q(Type::kF32, {width, heads, 4}), sinks(Type::kF32, {heads});
  Tensor block_table(Type::kI32, {11, 2}), offsets(Type::kI32, {3}), lengths(Type::kI32, {2});
  c.FillInput(q);
  c.FillParameters(sinks);
  block_table.Set({13, 0, 12, 1, 11, 2, 10, 3, 9, 4, 8, 5, 6, 7});
  offsets.Set({0, 3, 4});
  lengths.Set({700, 150});
  Tensor out(Type::kF32, {width_v, heads, 4});
  AttentionInputs inputs = {q, k, v, block_table, offsets, lengths, nullptr};
  for (const AttentionParams& params :
       {AttentionParams{0.125f, 0.0f, 0, true}, AttentionParams{0.125f, 0.0f, 0, false},
        AttentionParams{1.0f, 20.0f, 77, true}}) {
    for (const View* sink : {static_cast<const View*>(nullptr), &sinks.view()}) {
      inputs.sinks = sink;
      c.Run(out, [&](Range rows) { Attention(inputs, params, out, rows); });
      c.Check(out);
    }
  }
}

void MoeCase(Case& c) {
  const int64_t k = 64, n = 13, n_experts = 40, n_used = 4, tokens = 5;
  Tensor logits(Type::kF32, {n_experts, tokens}), bias(Type::kF32, {n_experts});
  Tensor ids(Type::kI32, {n_used, tokens}), weights(Type::kF32, {n_used, tokens});
  c.FillInput(logits);
  c.FillParameters(bias);
  for (MoeScoring scoring :
       {MoeScoring::kSoftmax, MoeScoring::kSigmoid, MoeScoring::kSelectedSoftmax}) {
    for (const View* selection_bias : {static_cast<const View*>(nullptr), &bias.view()}) {
      const MoeRouteParams params = {scoring, selection_bias != nullptr, 1.5f};
      c.Run(tokens,
            [&](Range range) { MoeRoute(logits, selection_bias, params, ids, weights, range); });
      c.Check(ids);
      c.Check(weights);
    }
  }
  Tensor w(Type::kQ4_1, {k, n, n_experts}), expert_bias(Type::kF32, {n, n_experts});
  Tensor x(Type::kF32, {k, 1, tokens}), y(Type::kF32, {n, n_used, tokens});
  Tensor out(Type::kF32, {n, tokens});
  c.FillWeights(w);
  c.FillParameters(expert_bias);
  c.FillInput(x);
  c.Run(n, [&](Range features) { MoeMatmul(w, x, ids, &expert_bias.view(), y, features); });
  c.Check(y);
  c.Run(out, [&](Range rows) { MoeCombine(y, weights, out, rows); });
  c.Check(out);
}

void TopKCase(Case& c) {
  Tensor logits(Type::kF32, {300, 5}), ids(Type::kI32, {7, 5}), values(Type::kF32, {7, 5});
  c.FillInput(logits);
  c.Run(logits, [&](Range rows) { TopK(logits, ids, values, rows); });
  c.Check(ids);
  c.Check(values);
}

struct Golden {
  std::string name;
  std::function<void(Case&)> run;
  uint64_t hash;
};

std::function<void(Case&)> Of(Type type, void (*run)(Case&, Type)) {
  return [=](Case& c) { run(c, type); };
}

std::vector<Golden> Goldens() {
  return {
      {"copy", CopyCase, 0x45cf22723b0f1cfd},
      {"gather_rows", GatherRowsCase, 0x9a9e17b0b76b8b45},
      {"elementwise", ElementwiseCase, 0x20c38aeb9a4aae70},
      {"glu", GluCase, 0xb9bdc01a454214ee},
      {"norm", NormCase, 0x354be266b058ef68},
      {"rope", RopeCase, 0x9f616c8dae86357e},
      {"moe", MoeCase, 0xc78e6c56c7f761ea},
      {"top_k", TopKCase, 0x5d8f1169b96531f4},
      {"attention f32", Of(Type::kF32, AttentionCase), 0x37a2632169bf4a97},
      {"attention f16", Of(Type::kF16, AttentionCase), 0x8d9550af7e5266f8},
      {"attention bf16", Of(Type::kBF16, AttentionCase), 0x1993f3d76598a9e3},
      {"attention q8_kv", Of(Type::kQ8_KV, AttentionCase), 0x6af8de570e4735b7},
      {"matmul f32", Of(Type::kF32, MatmulCase), 0x6b58a29c9a9da8fa},
      {"matmul f16", Of(Type::kF16, MatmulCase), 0xff3936c7d032e1e8},
      {"matmul bf16", Of(Type::kBF16, MatmulCase), 0xdd7058e9df1ba8d4},
      {"matmul q4_0", Of(Type::kQ4_0, MatmulCase), 0xa1690a9e01a8e737},
      {"matmul q4_1", Of(Type::kQ4_1, MatmulCase), 0x9516d9fad112d8cb},
      {"matmul q5_0", Of(Type::kQ5_0, MatmulCase), 0xee452add0858d640},
      {"matmul q5_1", Of(Type::kQ5_1, MatmulCase), 0x9398e2f449db8c06},
      {"matmul q8_0", Of(Type::kQ8_0, MatmulCase), 0x99572c6ff582e83b},
      {"matmul q2_k", Of(Type::kQ2_K, MatmulCase), 0xd3aad2fcb635ce49},
      {"matmul q3_k", Of(Type::kQ3_K, MatmulCase), 0x62782a66855e0b74},
      {"matmul q4_k", Of(Type::kQ4_K, MatmulCase), 0xd52745e4e9d72ac2},
      {"matmul q5_k", Of(Type::kQ5_K, MatmulCase), 0xfa7c6ce9c1800034},
      {"matmul q6_k", Of(Type::kQ6_K, MatmulCase), 0x69a4ffb85457e7e0},
      {"matmul iq4_nl", Of(Type::kIQ4_NL, MatmulCase), 0xdf8d800ab356b2e1},
      {"matmul iq4_xs", Of(Type::kIQ4_XS, MatmulCase), 0x9362283c65066234},
      {"matmul tq1_0", Of(Type::kTQ1_0, MatmulCase), 0xf9a0a0f351a7c300},
      {"matmul tq2_0", Of(Type::kTQ2_0, MatmulCase), 0xf256d586bd6bc838},
      {"matmul mxfp4", Of(Type::kMXFP4, MatmulCase), 0xb3859f506e3afe41},
  };
}

uint64_t HashOf(const Golden& golden, const Runner& runner) {
  quant::Hash hash;
  for (Fill fill : quant::kAllFills) {
    Case c(fill, runner, &hash);
    golden.run(c);
  }
  return hash.value();
}

TEST(GoldenTest, EveryOperationKeepsItsBits) {
  ASSERT_EQ(kNumericsVersion, 1u);
  for (const Golden& golden : Goldens()) {
    const uint64_t hash = HashOf(golden, Whole);
    EXPECT_EQ(hash, golden.hash) << golden.name << std::hex << " gave 0x" << hash;
  }
}

TEST(GoldenTest, ASplitRangeGivesTheSameBits) {
  for (const Golden& golden : Goldens()) {
    EXPECT_EQ(HashOf(golden, PiecesBackwards), golden.hash) << golden.name;
  }
}

TEST(GoldenTest, FlushedDenormalsGiveTheSameBits) {
  const quant::ScopedFlushToZero flush;
  for (const Golden& golden : Goldens())
    EXPECT_EQ(HashOf(golden, Whole), golden.hash) << golden.name;
}

}  // namespace
}  // namespace trine::reference
