// Qwen 2 and 2.5: Llama's layer with biases on q, k and v, and rotary pairs by halves. The mixture
// of experts has, beside those a router chooses, one that every token goes through, in a share that
// a gate of its own decides.
#include "runtime/model/architecture.h"

namespace trine {
namespace {

Tensor Attention(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kRequired));
  return b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd));
}

Tensor Layer(LayerBuilder& b, Tensor x) {
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

}  // namespace

const Architecture kQwen2 = {"qwen2", TRINE_ROPE_HALVES, NormKind::kRms, RequireDense, Layer};
const Architecture kQwen2Moe = {"qwen2moe", TRINE_ROPE_HALVES, NormKind::kRms, ConfigureMoe,
                                MoeLayer};

}  // namespace trine
