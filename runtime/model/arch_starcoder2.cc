// StarCoder 2: layer norms with biases, biases on every matrix, a feed-forward without a gate.
#include "runtime/model/architecture.h"

namespace trine {
namespace {

Tensor Layer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  x = b.Add(x, b.Linear(b.Attend(p), "attn_output", b.config().n_embd, Bias::kRequired));
  return b.Add(x, b.Ffn(b.Norm(x, "ffn_norm"), Activation::kGelu, Bias::kRequired));
}

}  // namespace

const Architecture kStarcoder2 = {"starcoder2", TRINE_ROPE_HALVES, NormKind::kLayer, RequireDense,
                                  Layer};

}  // namespace trine
