// Qwen 2 and 2.5: Llama's layer with biases on q, k and v, and rotary pairs by halves. The mixture
// of experts adds one expert that every token uses, scaled by its own gate.
#include "runtime/model/arch/architecture.h"

namespace trine {
namespace {

Tensor Attention(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kRequired));
  return b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd));
}

Tensor Qwen2Layer(LayerBuilder& b, Tensor x) {
  x = Attention(b, x);
  return b.Add(x, b.GatedFfn(b.Norm(x, "ffn_norm"), Activation::kSilu));
}

Tensor MoeLayer(LayerBuilder& b, Tensor x) {
  x = Attention(b, x);
  const Tensor f = b.Norm(x, "ffn_norm");
  const Tensor chosen = b.Experts(f, {.normalize = false});
  const Tensor shared = b.GatedFfn(f, Activation::kSilu, Bias::kNone, "_shexp");
  return b.Add(b.Add(chosen, b.Mul(shared, b.SigmoidGate(f, "ffn_gate_inp_shexp"))), x);
}

void ConfigureMoe(ConfigKeys& keys, ModelConfig* config) {
  RequireExperts(keys, config);
  if (config->experts.n_ff_shared == 0) config->experts.n_ff_shared = config->n_ff;
}

// Qwen 3, dense or a mixture of experts: no biases; each head of q and k is normed before its
// rotation.
Tensor Qwen3Layer(LayerBuilder& b, Tensor x) {
  const ModelConfig& c = b.config();

  Qkv p = b.Project(b.Norm(x, "attn_norm"));
  p.q = b.Norm(p.q, "attn_q_norm");
  p.k = b.Norm(p.k, "attn_k_norm");
  x = b.Add(x, b.Linear(b.Attend(b.Rotate(p)), "attn_output", c.n_embd));

  const Tensor f = b.Norm(x, "ffn_norm");
  return b.Add(x, c.experts.count > 0 ? b.Experts(f, {.normalize = true})
                                      : b.GatedFfn(f, Activation::kSilu));
}

}  // namespace

const Architecture kQwen2 = {"qwen2", TRINE_ROPE_HALVES, NormKind::kRms, RequireDense, Qwen2Layer};
const Architecture kQwen2Moe = {"qwen2moe", TRINE_ROPE_HALVES, NormKind::kRms, ConfigureMoe,
                                MoeLayer};

const Architecture kQwen3 = {"qwen3", TRINE_ROPE_HALVES, NormKind::kRms, RequireDense, Qwen3Layer};
const Architecture kQwen3Moe = {"qwen3moe", TRINE_ROPE_HALVES, NormKind::kRms, RequireExperts,
                                Qwen3Layer};

}  // namespace trine
