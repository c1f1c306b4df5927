// Llama 1 to 3, Mistral, SmolLM and others of the same shape: pre-norm, rotary positions on
// interleaved pairs, grouped-query attention, SwiGLU. Biases are rare, but some files have them.
#include "runtime/model/architecture.h"

namespace trine {

Tensor LlamaLayer(LayerBuilder& b, Tensor x) {
  const ModelConfig& c = b.config();

  const Tensor h = b.RmsNorm(x, "attn_norm");
  const Tensor q = b.Heads(b.Linear(h, "attn_q", c.n_heads * c.head_dim_k, Bias::kIfPresent),
                           c.head_dim_k, c.n_heads);
  const Tensor k = b.Heads(b.Linear(h, "attn_k", c.n_kv_heads * c.head_dim_k, Bias::kIfPresent),
                           c.head_dim_k, c.n_kv_heads);
  const Tensor v = b.Heads(b.Linear(h, "attn_v", c.n_kv_heads * c.head_dim_v, Bias::kIfPresent),
                           c.head_dim_v, c.n_kv_heads);
  const Tensor attended = b.Attention(b.Rope(q), b.Rope(k), v);
  x = b.Add(x, b.Linear(attended, "attn_output", c.n_embd, Bias::kIfPresent));

  const Tensor f = b.RmsNorm(x, "ffn_norm");
  const Tensor gate = b.Linear(f, "ffn_gate", c.n_ff, Bias::kIfPresent);
  const Tensor up = b.Linear(f, "ffn_up", c.n_ff, Bias::kIfPresent);
  return b.Add(x, b.Linear(b.SwiGlu(gate, up), "ffn_down", c.n_embd, Bias::kIfPresent));
}

}  // namespace trine
