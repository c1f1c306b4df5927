// Gemma 2 and 3: norms before and after attention and feed-forward, GeGLU, embeddings scaled by
// sqrt(width), most layers with a sliding window. Gemma 2 caps scores and logits softly; Gemma 3
// norms the heads of q and k instead, and its windowed layers have their own rope base. In the
// files, the norms' weights already include the 1 that Gemma adds.
#include <cmath>

#include "kernels/quant/scalar.h"
#include "runtime/model/arch/architecture.h"

namespace trine {
namespace {

Tensor GemmaLayer(LayerBuilder& b, Tensor x, bool norm_heads) {
  const ModelConfig& c = b.config();

  Qkv p = b.Project(b.Norm(x, "attn_norm"));
  if (norm_heads) {
    p.q = b.Norm(p.q, "attn_q_norm");
    p.k = b.Norm(p.k, "attn_k_norm");
  }
  const Tensor attended = b.Linear(b.Attend(b.Rotate(p)), "attn_output", c.n_embd);
  x = b.Add(b.Norm(attended, "post_attention_norm"), x);

  const Tensor f = b.GatedFfn(b.Norm(x, "ffn_norm"), Activation::kGelu);
  return b.Add(b.Norm(f, "post_ffw_norm"), x);
}

Tensor Gemma2Layer(LayerBuilder& b, Tensor x) { return GemmaLayer(b, x, false); }
Tensor Gemma3Layer(LayerBuilder& b, Tensor x) { return GemmaLayer(b, x, true); }

float Cap(ConfigKeys& keys, const char* name, double fallback) {
  return quant::Canon(static_cast<float>(keys.FloatOr(name, 0, 1e9, fallback)));
}

// The largest model of each generation divides its scores by the square root of width / heads,
// which differs from the square root of the heads' length. No metadata key says so.
void ConfigureGemma(ConfigKeys& keys, int64_t layers_of_largest, ModelConfig* config) {
  RequireDense(keys, config);
  config->embedding_scale = quant::Canon(std::sqrt(static_cast<float>(config->n_embd)));
  if (config->n_layers == layers_of_largest) {
    const auto width = static_cast<float>(config->n_embd / config->n_heads);
    config->attention_scale = quant::Canon(1.0f / std::sqrt(width));
  }
}

void ConfigureGemma2(ConfigKeys& keys, ModelConfig* config) {
  ConfigureGemma(keys, 46, config);
  config->window = 4096;
  ReadWindow(keys, 2, config);
  config->attention_softcap = Cap(keys, "attn_logit_softcapping", 50);
  config->logit_softcap = Cap(keys, "final_logit_softcapping", 30);
}

void ConfigureGemma3(ConfigKeys& keys, ModelConfig* config) {
  ConfigureGemma(keys, 62, config);
  ReadWindow(keys, 6, config);
  config->logit_softcap = Cap(keys, "final_logit_softcapping", 0);
  if (config->window == 0) return;
  RopeConfig local;  // never scaled
  local.dims = config->rope.dims;
  local.base = keys.FloatOr("rope.freq_base_swa", 1.0001, 1e12, 10000.0);
  config->rope_windowed = local;
}

}  // namespace

const Architecture kGemma2 = {"gemma2", TRINE_ROPE_HALVES, NormKind::kRms, ConfigureGemma2,
                              Gemma2Layer};
const Architecture kGemma3 = {"gemma3", TRINE_ROPE_HALVES, NormKind::kRms, ConfigureGemma3,
                              Gemma3Layer};

}  // namespace trine
