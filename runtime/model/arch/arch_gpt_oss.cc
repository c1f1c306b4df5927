// gpt-oss: a mixture of experts with biases everywhere and a clamped SwiGLU. Every other layer has
// a sliding window; each head has a sink that takes a share of the attention and has no value.
#include "absl/strings/str_cat.h"
#include "runtime/model/arch/architecture.h"

namespace trine {
namespace {

Tensor GptOssLayer(LayerBuilder& b, Tensor x) {
  const Qkv p = b.Rotate(b.Project(b.Norm(x, "attn_norm"), Bias::kIfPresent));
  const Tensor attended = b.Attend(p, "attn_sinks");
  x = b.Add(b.Linear(attended, "attn_output", b.config().n_embd, Bias::kRequired), x);

  const Tensor f = b.Norm(x, "post_attention_norm");
  return b.Add(b.Experts(f, {.scoring = TRINE_MOE_SOFTMAX_SELECTED,
                             .activation = Activation::kClampedSwiglu,
                             .bias = Bias::kRequired}),
               x);
}

void ConfigureGptOss(ConfigKeys& keys, ModelConfig* config) {
  RequireExperts(keys, config);
  ReadWindow(keys, 2, config);
  keys.Require(config->window > 0,
               absl::StrCat(keys.Name("attention.sliding_window"), " is 0 or missing"));
}

}  // namespace

const Architecture kGptOss = {"gpt-oss", TRINE_ROPE_HALVES, NormKind::kRms, ConfigureGptOss,
                              GptOssLayer};

}  // namespace trine
