// SmolLM 3: Llama's layer, but every fourth one has no rotary positions.
#include "runtime/model/architecture.h"

namespace trine {
namespace {

constexpr int64_t kUnrotatedEvery = 4;  // no key says so

Tensor Layer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd, Bias::kIfPresent));
  return b.Add(x, b.GatedFfn(b.Norm(x, "ffn_norm"), Activation::kSilu, Bias::kIfPresent));
}

void Configure(ConfigKeys& keys, ModelConfig* config) {
  RequireDense(keys, config);
  for (int64_t i = 1; i <= config->n_layers; ++i) {
    config->unrotated.push_back(i % kUnrotatedEvery == 0);
  }
}

}  // namespace

const Architecture kSmolLm3 = {"smollm3", TRINE_ROPE_INTERLEAVED, NormKind::kRms, Configure, Layer};

}  // namespace trine
