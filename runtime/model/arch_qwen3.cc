// Qwen 3, dense or a mixture of experts: no biases; each head of q and k is normed before its
// rotation.
#include "runtime/model/architecture.h"

namespace trine {
namespace {

Tensor Layer(LayerBuilder& b, Tensor x) {
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

const Architecture kQwen3 = {"qwen3", TRINE_ROPE_HALVES, NormKind::kRms, RequireDense, Layer};
const Architecture kQwen3Moe = {"qwen3moe", TRINE_ROPE_HALVES, NormKind::kRms, RequireExperts,
                                Layer};

}  // namespace trine
