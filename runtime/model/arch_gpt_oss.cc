// gpt-oss: a mixture of experts with biases everywhere and a clamped SwiGLU; every other layer has
// a sliding window, and each head a sink that takes a share of the attention and gives nothing.
#include "absl/strings/str_cat.h"
#include "runtime/model/architecture.h"

namespace trine {
namespace {

Tensor Layer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  const Tensor attended = b.Attend(p, "attn_sinks");
  x = b.Add(b.Linear(attended, "attn_output", b.config().n_embd, Bias::kRequired), x);

  const Tensor f = b.Norm(x, "post_attention_norm");
  return b.Add(b.Experts(f, {.scoring = TRINE_MOE_SOFTMAX_SELECTED,
                             .activation = Activation::kClampedSwiglu,
                             .bias = Bias::kRequired}),
               x);
}

void Configure(ConfigKeys& keys, ModelConfig* config) {
  RequireExperts(keys, config);
  ReadWindow(keys, 2, config);
  keys.Require(config->window > 0,
               absl::StrCat(keys.Name("attention.sliding_window"), " is 0 or missing"));
}

}  // namespace

const Architecture kGptOss = {"gpt-oss", TRINE_ROPE_HALVES, NormKind::kRms, Configure, Layer};

}  // namespace trine
