// Phi 3, 3.5 and 4: Llama's layer with q, k and v in one matrix, and gate and up in another; the
// versions for long contexts have long rope. A sliding window in the metadata is not looked at:
// converters have written it where the model has none.
#include "runtime/model/architecture.h"

namespace trine {
namespace {

Tensor Layer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd));
  return b.Add(x, b.GatedFfn(b.Norm(x, "ffn_norm"), Activation::kSilu));
}

}  // namespace

const Architecture kPhi3 = {"phi3", TRINE_ROPE_HALVES, NormKind::kRms, RequireDense, Layer};

}  // namespace trine
