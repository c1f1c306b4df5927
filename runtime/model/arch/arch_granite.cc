// Granite 3 and later, dense or a mixture of experts: Llama's layer with four additional factors,
// for embeddings, attention scores, additions to the residual, and logits.
#include "kernels/quant/scalar.h"
#include "runtime/model/arch/architecture.h"

namespace trine {
namespace {

Tensor FeedForward(LayerBuilder& b, Tensor f) {
  const ExpertConfig& experts = b.config().experts;
  if (experts.count == 0) return b.GatedFfn(f, Activation::kSilu, Bias::kIfPresent);
  const Tensor chosen = b.Experts(f, {.normalize = true});
  if (experts.n_ff_shared == 0) return chosen;
  return b.Add(chosen, b.GatedFfn(f, Activation::kSilu, Bias::kNone, "_shexp"));
}

Tensor GraniteLayer(LayerBuilder& b, Tensor x) {
  const ModelConfig& c = b.config();

  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  const Tensor attended = b.Linear(b.Attend(p), "attn_output", c.n_embd, Bias::kIfPresent);
  x = b.Add(b.Scale(attended, c.residual_scale), x);

  const Tensor f = FeedForward(b, b.Norm(x, "ffn_norm"));
  return b.Add(b.Scale(f, c.residual_scale), x);
}

// In files, a factor of 0 means that there is none.
float Factor(ConfigKeys& keys, const char* name, float fallback) {
  const double value = keys.FloatOr(name, 0, 1e9, 0);
  return value == 0 ? fallback : quant::Canon(static_cast<float>(value));
}

void ConfigureGranite(ConfigKeys& keys, ModelConfig* config) {
  config->embedding_scale = Factor(keys, "embedding_scale", 1);
  config->residual_scale = Factor(keys, "residual_scale", 1);
  config->attention_scale = Factor(keys, "attention.scale", config->attention_scale);
  config->logit_scale = quant::Canon(1.0f / Factor(keys, "logit_scale", 1));
  // In Granite's files, this means that the model has no rotary positions.
  if (!keys.BoolOr("rope.scaling.finetuned", true)) {
    config->unrotated.assign(static_cast<size_t>(config->n_layers), true);
  }
}

}  // namespace

const Architecture kGranite = {"granite", TRINE_ROPE_INTERLEAVED, NormKind::kRms, ConfigureGranite,
                               GraniteLayer};
const Architecture kGraniteMoe = {"granitemoe", TRINE_ROPE_INTERLEAVED, NormKind::kRms,
                                  ConfigureGranite, GraniteLayer};

}  // namespace trine
