// Cases of more than one op, and small cases that other checks use.
#include "plugins/conformance/cases/op_cases.h"

namespace trine::conformance {

std::vector<OpCase> ProbeCases(Random& random) {
  std::vector<OpCase> cases;
  for (uint32_t kind : {TRINE_OP_ADD, TRINE_OP_MUL}) {
    CaseBuilder b(random, Spread32::kBell);
    const int64_t t = b.Tokens(3, 5);
    const uint32_t x = b.Input({37, t}), other = b.Input({37, t}), y = b.Output({37, t});
    b.graph().AddOp(kind, {x, other}, {y});
    cases.push_back(b.Take());
  }
  {
    CaseBuilder b(random, Spread32::kBell);
    const int64_t t = b.Tokens(3, 5);
    const uint32_t x = b.Input({37, t}), y = b.Output({37, t});
    b.graph().AddOp(TRINE_OP_SCALE, {x}, {y}, trine_scale_attr{0, 0.5f});
    cases.push_back(b.Take());
  }
  for (uint32_t dtype : WeightTypes()) {
    cases.push_back(MatmulCase(random, dtype, 256, 17, 3, false, Spread32::kBell));
  }
  {
    CaseBuilder b(random, Spread32::kBell);
    const int64_t t = b.Tokens(3, 5);
    const uint32_t x = b.Input({64, t}), w = b.Weight(TRINE_DTYPE_F32, {64});
    b.graph().AddOp(TRINE_OP_RMS_NORM, {x, w}, {b.Output({64, t})}, trine_norm_attr{0, 1e-5f});
    cases.push_back(b.Take());
  }
  return cases;
}

OpCase MatmulChain(Random& random, uint32_t dtype, bool mix_rows) {
  constexpr int64_t kWidth = 256, kTokens = 7;
  CaseBuilder b(random, Spread32::kBell);
  GraphSpec& g = b.graph();
  uint32_t x = b.Input({kWidth, kTokens});
  const uint32_t y = b.Output({kWidth, kTokens});
  const auto multiply = [&](uint32_t out) {
    g.AddOp(TRINE_OP_MATMUL, {b.Weight(dtype, {kWidth, kWidth}), x}, {out});
    x = out;
  };
  multiply(b.Temp({kWidth, kTokens}));
  // Adds rows that other workers wrote, whether workers take every n-th row or consecutive rows.
  for (int64_t row : {1, 6, 0, 5}) {
    if (!mix_rows) break;
    const uint32_t one = g.AddAlias(x), sum = b.Temp({kWidth, kTokens});
    g.tensors[one].dims[1] = 1;
    g.tensors[one].offset += static_cast<uint64_t>(row * kWidth) * sizeof(float);
    g.AddOp(TRINE_OP_ADD, {x, one}, {sum});
    x = sum;
  }
  multiply(b.Temp({kWidth, kTokens}));
  multiply(y);
  return b.TakeFixed();
}

OpCase TransformerLayer(Random& random, uint32_t weight_dtype, uint32_t cache_dtype,
                        int64_t tokens) {
  constexpr int64_t kWidth = 256, kHeads = 4, kKvHeads = 2, kHead = 64, kHidden = 512;
  constexpr int64_t kBlock = 16, kBlocks = 4, kPast = 20;
  CaseBuilder b(random, Spread32::kBell);
  GraphSpec& g = b.graph();
  const int64_t t = b.Tokens(tokens, tokens + 3);
  const auto linear = [&](int64_t k, int64_t n, uint32_t x) {
    const uint32_t w = b.Weight(weight_dtype, {k, n}), y = b.Temp({n, t});
    g.AddOp(TRINE_OP_MATMUL, {w, x}, {y});
    return y;
  };
  const auto norm = [&](uint32_t x) {
    const uint32_t w = b.Weight(TRINE_DTYPE_F32, {kWidth}), y = b.Temp({kWidth, t});
    g.AddOp(TRINE_OP_RMS_NORM, {x, w}, {y}, trine_norm_attr{0, 1e-5f});
    return y;
  };
  // Views the same memory as heads of 64 values.
  const auto as_heads = [&](uint32_t tensor, int64_t heads) {
    const uint32_t view = g.AddAlias(tensor);
    trine_tensor& v = g.tensors[view];
    v.rank = 3;
    v.dims[0] = kHead, v.dims[1] = heads, v.dims[2] = t;
    return view;
  };

  const uint32_t x = b.Input({kWidth, t});
  const uint32_t table = b.Input({kHead, t});
  std::vector<int32_t> slots, blocks = {2, 0, 3, 1};
  for (int64_t i = 0; i < tokens + 3; ++i) {
    const int64_t position = kPast + i;
    slots.push_back(blocks[static_cast<size_t>(position / kBlock)] * static_cast<int32_t>(kBlock) +
                    static_cast<int32_t>(position % kBlock));
  }
  const uint32_t slot = b.Ints({t}, slots), block_table = b.Ints({kBlocks, 1}, blocks);
  const uint32_t offsets = b.Ints({2}, {0, static_cast<int32_t>(tokens)});
  const uint32_t lengths = b.Ints({1}, {static_cast<int32_t>(kPast + tokens)});
  const uint32_t k_cache = b.Cache(cache_dtype, {kHead, kBlock, kKvHeads, kBlocks});
  const uint32_t v_cache = b.Cache(cache_dtype, {kHead, kBlock, kKvHeads, kBlocks});
  const uint32_t y = b.Output({kWidth, t});

  const uint32_t normed = norm(x);
  const uint32_t q = as_heads(linear(kWidth, kHeads * kHead, normed), kHeads);
  const uint32_t k = as_heads(linear(kWidth, kKvHeads * kHead, normed), kKvHeads);
  const uint32_t v = as_heads(linear(kWidth, kKvHeads * kHead, normed), kKvHeads);
  for (uint32_t rotated : {q, k}) {
    g.AddOp(TRINE_OP_ROPE, {rotated, table}, {rotated}, trine_rope_attr{0, TRINE_ROPE_HALVES});
  }
  g.AddOp(TRINE_OP_KV_STORE, {k, slot}, {k_cache});
  g.AddOp(TRINE_OP_KV_STORE, {v, slot}, {v_cache});
  const uint32_t attended = b.Temp({kWidth, t});
  g.AddOp(TRINE_OP_ATTENTION, {q, k_cache, v_cache, block_table, offsets, lengths},
          {as_heads(attended, kHeads)},
          trine_attention_attr{0, TRINE_ATTENTION_CAUSAL, 0.125f, 0, 0});
  const uint32_t residual = b.Temp({kWidth, t});
  g.AddOp(TRINE_OP_ADD, {x, linear(kWidth, kWidth, attended)}, {residual});
  const uint32_t normed2 = norm(residual);
  const uint32_t gate = linear(kWidth, kHidden, normed2), up = linear(kWidth, kHidden, normed2);
  g.AddOp(TRINE_OP_GLU, {gate, up}, {gate}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
  g.AddOp(TRINE_OP_ADD, {residual, linear(kHidden, kWidth, gate)}, {y});
  return b.TakeFixed();
}

}  // namespace trine::conformance
