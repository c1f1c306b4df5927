// OLMo 2 and 3: attention and feed-forward have a norm after them, inside the residual, and none
// before; q and k are normed over their whole width. In OLMo 3 three of four layers have a sliding
// window, and the positions of these layers are never scaled.
#include "runtime/model/arch/architecture.h"

namespace trine {
namespace {

Tensor Olmo2Layer(LayerBuilder& b, Tensor x) {
  const ModelConfig& c = b.config();

  const int64_t n_q = c.n_heads * c.head_dim_k, n_kv = c.n_kv_heads * c.head_dim_k;
  const Tensor q = b.Norm(b.Linear(x, "attn_q", n_q), "attn_q_norm");
  const Tensor k = b.Norm(b.Linear(x, "attn_k", n_kv), "attn_k_norm");
  const Tensor v = b.Linear(x, "attn_v", c.n_kv_heads * c.head_dim_v);
  const Qkv p = {b.Heads(q, c.head_dim_k, c.n_heads), b.Heads(k, c.head_dim_k, c.n_kv_heads),
                 b.Heads(v, c.head_dim_v, c.n_kv_heads)};
  const Tensor attended = b.Linear(b.Attend(b.Rotate(p)), "attn_output", c.n_embd);
  x = b.Add(b.Norm(attended, "post_attention_norm"), x);

  return b.Add(b.Norm(b.GatedFfn(x, Activation::kSilu), "post_ffw_norm"), x);
}

void ConfigureOlmo2(ConfigKeys& keys, ModelConfig* config) {
  RequireDense(keys, config);
  ReadWindow(keys, 4, config);
  if (config->window == 0 || config->rope.scaling == RopeScalingType::kNone) return;
  RopeConfig unscaled;
  unscaled.dims = config->rope.dims;
  unscaled.base = config->rope.base;
  config->rope_windowed = unscaled;
}

}  // namespace

const Architecture kOlmo2 = {"olmo2", TRINE_ROPE_HALVES, NormKind::kRms, ConfigureOlmo2,
                             Olmo2Layer};

}  // namespace trine
