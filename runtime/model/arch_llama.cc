// Llama 1 to 3, Mistral, SmolLM and others of the same shape: pre-norm, rotary positions on
// interleaved pairs, grouped-query attention, SwiGLU. Mixtral is the same with experts. Biases are
// rare, but some files have them.
#include "runtime/model/architecture.h"

namespace trine {
namespace {

Tensor Layer(LayerBuilder& b, Tensor x) {
  const ModelConfig& c = b.config();

  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", c.n_embd, Bias::kIfPresent));

  const Tensor f = b.Norm(x, "ffn_norm");
  return b.Add(x, c.experts.count > 0 ? b.Experts(f, {.normalize = true})
                                      : b.GatedFfn(f, Activation::kSilu, Bias::kIfPresent));
}

}  // namespace

const Architecture kLlama = {"llama", TRINE_ROPE_INTERLEAVED, NormKind::kRms, NothingToConfigure,
                             Layer};

}  // namespace trine
