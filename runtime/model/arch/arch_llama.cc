// Llama 1 to 3, Mistral, SmolLM and others of the same shape: pre-norm, rotary positions on
// interleaved pairs, grouped-query attention, SwiGLU. Mixtral has experts in addition. Biases are
// rare, but some files have them. The other families below are near to Llama.
#include "runtime/model/arch/architecture.h"

namespace trine {
namespace {

Tensor LlamaLayer(LayerBuilder& b, Tensor x) {
  const ModelConfig& c = b.config();

  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", c.n_embd, Bias::kIfPresent));

  const Tensor f = b.Norm(x, "ffn_norm");
  return b.Add(x, c.experts.count > 0 ? b.Experts(f, {.normalize = true})
                                      : b.GatedFfn(f, Activation::kSilu, Bias::kIfPresent));
}

// SmolLM 3: Llama's layer, but every fourth layer has no rotary positions.
constexpr int64_t kUnrotatedEvery = 4;  // no metadata key says so

Tensor Smollm3Layer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd, Bias::kIfPresent));
  return b.Add(x, b.GatedFfn(b.Norm(x, "ffn_norm"), Activation::kSilu, Bias::kIfPresent));
}

void ConfigureSmollm3(ConfigKeys& keys, ModelConfig* config) {
  RequireDense(keys, config);
  for (int64_t i = 1; i <= config->n_layers; ++i) {
    config->unrotated.push_back(i % kUnrotatedEvery == 0);
  }
}

// Phi 3, 3.5 and 4: Llama's layer with q, k and v in one matrix, and gate and up in another; the
// versions for long contexts have long rope. A sliding window in the metadata is ignored:
// converters have written it for models without one.
Tensor Phi3Layer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd));
  return b.Add(x, b.GatedFfn(b.Norm(x, "ffn_norm"), Activation::kSilu));
}

// StarCoder 2: layer norms with biases, biases on every matrix, a feed-forward without a gate.
Tensor Starcoder2Layer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd, Bias::kRequired));
  return b.Add(x, b.Ffn(b.Norm(x, "ffn_norm"), Activation::kGelu, Bias::kRequired));
}

}  // namespace

const Architecture kLlama = {"llama", TRINE_ROPE_INTERLEAVED, NormKind::kRms, NothingToConfigure,
                             LlamaLayer};

const Architecture kSmolLm3 = {"smollm3", TRINE_ROPE_INTERLEAVED, NormKind::kRms, ConfigureSmollm3,
                               Smollm3Layer};

const Architecture kPhi3 = {"phi3", TRINE_ROPE_HALVES, NormKind::kRms, RequireDense, Phi3Layer};

const Architecture kStarcoder2 = {"starcoder2", TRINE_ROPE_HALVES, NormKind::kLayer, RequireDense,
                                  Starcoder2Layer};

}  // namespace trine
