// Qwen 3 (dense): no biases; each head of q and k is normed before its rotation.
#include "runtime/model/architecture.h"

namespace trine {

Tensor Qwen3Layer(LayerBuilder& b, Tensor x) {
  const ModelConfig& c = b.config();

  const Tensor h = b.RmsNorm(x, "attn_norm");
  const Tensor q =
      b.Heads(b.Linear(h, "attn_q", c.n_heads * c.head_dim_k), c.head_dim_k, c.n_heads);
  const Tensor k =
      b.Heads(b.Linear(h, "attn_k", c.n_kv_heads * c.head_dim_k), c.head_dim_k, c.n_kv_heads);
  const Tensor v =
      b.Heads(b.Linear(h, "attn_v", c.n_kv_heads * c.head_dim_v), c.head_dim_v, c.n_kv_heads);
  const Tensor attended =
      b.Attention(b.Rope(b.RmsNorm(q, "attn_q_norm")), b.Rope(b.RmsNorm(k, "attn_k_norm")), v);
  x = b.Add(x, b.Linear(attended, "attn_output", c.n_embd));

  const Tensor f = b.RmsNorm(x, "ffn_norm");
  const Tensor gate = b.Linear(f, "ffn_gate", c.n_ff);
  const Tensor up = b.Linear(f, "ffn_up", c.n_ff);
  return b.Add(x, b.Linear(b.SwiGlu(gate, up), "ffn_down", c.n_embd));
}

}  // namespace trine
